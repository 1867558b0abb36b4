import { createContext, use, useEffect, useState, useSyncExternalStore } from 'react';
import type { components } from '../../client/management-api.ts';
import type { Gateway } from './gateway-client.ts';
import type { SessionStore } from './session-store.ts';

type Whoami = components['schemas']['Whoami'];
export type Scope = Whoami['scopes'][number];

export interface Api extends Pick<Gateway, 'client' | 'feed' | 'adoptSecret'> {
  readonly whoami: Whoami;
  readonly session: SessionStore;
}

/** Undefined while signed out. */
export const ApiContext = createContext<Api | undefined>(undefined);

export function useApi(): Api {
  const api = use(ApiContext);
  if (api === undefined) throw new Error('no one is signed in');
  return api;
}

/** Tells which scopes the token has: `can('keys:write')`, true without one. Pages hide what the token may not do, instead of disabling it. */
export function useScopes(): { readonly can: (scope: Scope | undefined) => boolean } {
  const { scopes } = useApi().whoami;
  return { can: (scope) => scope === undefined || scopes.includes(scope) };
}

/** While `isKept`, for what makes or shows a secret that can't be shown again: neither the end of the session, another sign-in nor Back takes it away. */
export function useKeptSession(isKept: boolean): void {
  const { session } = useApi();
  useEffect(() => (isKept ? session.keep() : undefined), [session, isKept]);
}

/** The value; while the page makes or shows a secret that can't be shown again, the value from before. */
export function useUnlessKept<T>(session: SessionStore, value: T): T {
  const isKept = useSyncExternalStore(session.subscribe, () => session.isKept);
  const [shown, setShown] = useState(value);
  if (!isKept && shown !== value) setShown(value);
  return isKept ? shown : value;
}
