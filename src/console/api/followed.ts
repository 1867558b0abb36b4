import { useCallback, useEffect, useRef, useSyncExternalStore } from 'react';
import { type Scope, useApi } from './api-context.tsx';

/** What data follows from the stream of events. */
export interface Followed {
  /** The beginnings of the types of events that change the data. */
  readonly types: readonly string[];
  /** The scopes that a token needs to hear all of them. */
  readonly scopes: readonly Scope[];
}

/** Changes of keys. */
export const KEY_EVENTS: Followed = { types: ['tollgate.key.'], scopes: ['webhooks:read', 'keys:read'] };

/** Everything that the audit log tells of and that changes something. */
export const AUDITED_EVENTS: Followed = {
  types: ['tollgate.'],
  scopes: ['webhooks:read', 'keys:read', 'audit:read'],
};

/** How often followed data is read all the same: some of it changes without an event, such as the last use of a key. */
const FOLLOWED_POLL_MS = 60_000;

interface Reactions {
  /** The data has changed. */
  readonly onEvents: () => void;
  /** The stream has opened: the data may have changed before. */
  readonly onOpen: () => void;
}

/**
 * Follows the events that change data. True while they arrive: then polling can be slow. A token with `onlyTags` does not hear of all that
 * it may read.
 */
export function useFollowed(followed: Followed | undefined, reactions: Reactions): boolean {
  const { feed, whoami } = useApi();
  const latest = useRef(reactions);
  useEffect(() => {
    latest.current = reactions;
  });
  const types =
    whoami.onlyTags.length === 0 && followed?.scopes.every((scope) => whoami.scopes.includes(scope))
      ? followed.types
      : undefined;
  const subscribe = useCallback(
    (onChange: () => void) => {
      if (types === undefined) return () => undefined;
      return feed.follow({
        onState: () => {
          if (feed.isOpen) latest.current.onOpen();
          onChange();
        },
        onEvents: (happened) => {
          const isMeant = (type: string) => types.some((beginning) => type.startsWith(beginning));
          if ([...happened].some(isMeant)) latest.current.onEvents();
        },
      });
    },
    [feed, types],
  );
  return useSyncExternalStore(subscribe, () => types !== undefined && feed.isOpen);
}

/** How often data is read: seldom while its events arrive. */
export function pollBeside(isFollowed: boolean, pollMs: number | false): number | false {
  return isFollowed && pollMs !== false ? Math.max(pollMs, FOLLOWED_POLL_MS) : pollMs;
}
