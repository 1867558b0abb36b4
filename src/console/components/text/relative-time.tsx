import { exactTime, shortTime } from '../../format/exact-time.ts';
import { LOCALE } from '../../format/locale.ts';
import { useNow } from './use-now.ts';

interface RelativeTimeProps {
  /** RFC 3339, as the management interface writes it, or milliseconds. */
  readonly at: string | number | null | undefined;
  /** Shown if there is no time. */
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

/** "in 1 month (3 Feb 2026, 14:00)": for what ends. A month may be of 59 days, and nothing hovers on a phone or with the keyboard. */
export function EndTime({ at }: { readonly at: string | number }) {
  return (
    <>
      <RelativeTime at={at} /> ({shortTime(typeof at === 'number' ? at : Date.parse(at))})
    </>
  );
}

const UNITS = [
  ['year', 31_557_600_000],
  ['month', 2_629_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

// "Tomorrow" and "last month" would be of the calendar, and differ from a length of time by up to one of them.
const relative = new Intl.RelativeTimeFormat(LOCALE);
const present = new Intl.RelativeTimeFormat(LOCALE, { numeric: 'auto' }).format(0, 'second');

/** "2 hours ago", "in 3 days", "now". */
function relativeTime(at: number, now: number): string {
  const difference = at - now;
  for (const [unit, ms] of UNITS) {
    if (Math.abs(difference) >= ms) return relative.format(Math.trunc(difference / ms), unit);
  }
  return present;
}
