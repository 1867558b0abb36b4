import { faultSentence } from '../../api/fault-kind.ts';
import type { Live } from '../../api/live.ts';
import { Button } from '../forms/button.tsx';
import { RelativeTime } from '../text/relative-time.tsx';
import { Notice } from './notice.tsx';

/** Above data that is shown although it could not be read again: says so, and how old it is. Nothing while all is well. */
export function LiveNotice({ live }: { readonly live: Live<unknown> }) {
  if (live.status === 'failed') return <Notice tone="failed">{faultSentence(live.error)}</Notice>;
  if (live.status !== 'away' || live.data === undefined) return null;
  return (
    <Notice
      tone="limited"
      action={
        <Button small onClick={live.refresh}>
          Try again
        </Button>
      }
    >
      The gateway or its store does not respond. This is how it was <RelativeTime at={live.dataAt} />.
    </Notice>
  );
}
