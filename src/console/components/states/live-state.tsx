import { CloudOff, Lock, SearchX } from 'lucide-react';
import type { ReactNode } from 'react';
import { useApi, useUnlessKept } from '../../api/api-context.tsx';
import { faultSentence } from '../../api/fault-kind.ts';
import type { Live } from '../../api/live.ts';
import { Button } from '../forms/button.tsx';
import { focusAround } from '../forms/focus-around.ts';
import { RelativeTime } from '../text/relative-time.tsx';
import { EmptyState } from './empty-state.tsx';
import { Notice } from './notice.tsx';

interface LiveStateProps<T> {
  readonly live: Live<T>;
  /** The name of the data: "keys", "the usage". */
  readonly what: string;
  /** Shown during the first load; has the size of the data. */
  readonly skeleton: ReactNode;
  readonly children: (data: T) => ReactNode;
}

/** Shows the states that all live data share: first load, no scope, store unavailable, not found. Otherwise renders its children. */
export function LiveState<T>({ live, what, skeleton, children }: LiveStateProps<T>) {
  const isGone = live.status === 'no-scope' || live.status === 'not-found';
  // A dialog among the children may be what makes or shows a secret that can't be shown again.
  const wasGone = useUnlessKept(useApi().session, isGone);
  if (live.data !== undefined && !(isGone && wasGone))
    return (
      <>
        <LiveNotice live={live} />
        {children(live.data)}
      </>
    );
  switch (live.status) {
    case 'no-scope':
      return <NoScope what={what} scope={live.requiredScope} />;
    case 'not-found':
      return (
        <EmptyState icon={SearchX} title="There is no such thing here">
          {faultSentence(live.error)}
        </EmptyState>
      );
    case 'unavailable':
    case 'failed':
      return (
        <EmptyState
          icon={CloudOff}
          title={`The gateway did not send ${what}`}
          action={
            <Button ref={focusAround} onClick={live.refresh}>
              Try again
            </Button>
          }
        >
          {faultSentence(live.error)}
        </EmptyState>
      );
    case 'loading':
    case 'ready':
    case 'refreshing':
      return (
        <div aria-busy="true">
          <span className="visually-hidden">Loading {what}</span>
          {skeleton}
        </div>
      );
  }
}

export function NoScope({ what, scope }: { readonly what: string; readonly scope: string | undefined }) {
  return (
    <EmptyState icon={Lock} title={`This token may not see ${what}`}>
      {scope === undefined ? (
        'Sign in with a token that may.'
      ) : (
        <>
          It lacks the scope <code>{scope}</code>.
        </>
      )}
    </EmptyState>
  );
}

/** Shown above data that could not be read again: says so, and how old the data is. Otherwise renders nothing. */
function LiveNotice({ live }: { readonly live: Live<unknown> }) {
  const { status } = live;
  if (status === 'failed' || status === 'no-scope' || status === 'not-found')
    return <Notice tone="failed">{faultSentence(live.error)}</Notice>;
  if (status !== 'unavailable') return null;
  return (
    <Notice
      tone="limited"
      action={
        <Button ref={focusAround} small onClick={live.refresh}>
          Try again
        </Button>
      }
    >
      The gateway or its store does not respond. This is how it was <RelativeTime at={live.dataAt} />.
    </Notice>
  );
}
