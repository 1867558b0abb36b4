import { exactTime } from '../../format/exact-time.ts';
import { relativeTime } from '../../format/relative-time.ts';
import { useNow } from './use-now.ts';

interface RelativeTimeProps {
  /** RFC 3339, as the management interface writes it, or milliseconds. */
  readonly at: string | number | null | undefined;
  /** What to show instead of a time that there is not. */
  readonly missing?: string;
}

/** "2 hours ago", with the exact instant and the time zone on hover. */
export function RelativeTime({ at, missing = 'never' }: RelativeTimeProps) {
  const now = useNow();
  if (at === null || at === undefined) return <>{missing}</>;
  const instant = typeof at === 'number' ? at : Date.parse(at);
  return (
    <time dateTime={new Date(instant).toISOString()} title={exactTime(instant)}>
      {relativeTime(instant, now)}
    </time>
  );
}
