// The room `console`: the web console, which runs in the browser.
// In: what an administrator clicks and types, and responses of the management interface.
// Out: pages, and calls of the management interface with the token of the tab or the session of the browser.

import { QueryClientProvider, useQuery, useQueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { Route, Router, Switch, useLocation } from 'wouter';
import { bodyOf } from '../client/management-client.ts';
import { type Api, ApiContext, useUnlessKept } from './api/api-context.tsx';
import { faultKind, faultSentence } from './api/fault-kind.ts';
import { connectGateway, type Gateway } from './api/gateway-client.ts';
import { pollAfter } from './api/live.ts';
import { createQueryClient } from './api/query-client.ts';
import type { SessionStore } from './api/session-store.ts';
import { signOut } from './api/sign-out.ts';
import { Button, ButtonLink } from './components/forms/button.tsx';
import { EmptyState } from './components/states/empty-state.tsx';
import { Notice } from './components/states/notice.tsx';
import { Skeleton } from './components/states/skeleton.tsx';
import { ToastRegion, toast } from './components/states/toast.tsx';
import { SignInPage } from './pages/sign-in-page.tsx';
import { ROUTES } from './routes.tsx';
import { PageErrorBoundary } from './shell/page-error-boundary.tsx';
import { Shell } from './shell/shell.tsx';

const BASE = '/tollgate/console';

interface AppProps {
  readonly session: SessionStore;
  /** Of the identity provider with which people can sign in; undefined: there is none. */
  readonly providerHost: string | undefined;
}

/** The whole console: the sign-in page, or the pages for who is signed in. */
export function App({ session, providerHost }: AppProps) {
  const state = useSyncExternalStore(session.subscribe, session.current);
  // The router begins to listen in an effect, which is later.
  useLayoutEffect(() => session.guardPage(), [session]);
  return (
    <PageErrorBoundary>
      <Router base={BASE}>
        {state.status === 'signed-in' ? (
          <SignedIn key={state.serial} session={session} token={state.token} serial={state.serial} />
        ) : (
          <SignInPage
            session={session}
            reason={state.reason}
            failure={state.failure}
            providerHost={providerHost}
          />
        )}
        <ToastRegion />
      </Router>
    </PageErrorBoundary>
  );
}

interface SignedInProps {
  readonly session: SessionStore;
  readonly token: string | null;
  readonly serial: number;
}

/** Has its own client and cache for each sign-in, so that no data outlasts the token or the person that may see it. */
function SignedIn({ session, token, serial }: SignedInProps) {
  // The gateway itself goes on with a new secret of the token: a new client would lose what the pages show.
  const [gateway] = useState(() =>
    connectGateway(token, {
      onUnauthorized: () => session.expire(serial),
      onNewSecret: (secret) => session.replaceToken(serial, secret),
    }),
  );
  const queries = useMemo(createQueryClient, []);
  useEffect(
    () => () => {
      gateway.feed.close();
      // They may tell of what only this person may see.
      toast.closeAll();
    },
    [gateway],
  );
  return (
    <QueryClientProvider client={queries}>
      <WithWhoami session={session} serial={serial} gateway={gateway} />
    </QueryClientProvider>
  );
}

interface WithWhoamiProps {
  readonly session: SessionStore;
  readonly serial: number;
  readonly gateway: Gateway;
}

function WithWhoami({ session, serial, gateway }: WithWhoamiProps) {
  const queries = useQueryClient();
  /** Who this sign-in began with. */
  const person = useRef<string | null>(undefined);
  const { data, error } = useQuery({
    queryKey: ['whoami'],
    queryFn: async ({ signal }) => {
      const found = await bodyOf(gateway.client.GET('/tollgate/whoami', { signal }));
      gateway.setScopes(found.scopes);
      const known = queries.getQueryData<Api['whoami']>(['whoami']);
      if (known === undefined) person.current = found.subject;
      if (known !== undefined && known.sessionId !== found.sessionId) {
        // What the same person has typed stays; what they may do now is in `found`.
        if (person.current === found.subject) session.continueSession(serial);
        else session.replaceSession(serial);
      }
      return found;
    },
    // The scopes of a token or a person can change meanwhile.
    refetchInterval: ({ state }) => pollAfter(state.error, state.data === undefined ? 5000 : 60_000),
  });
  // Without its scope a page would take away the dialog with the secret.
  const whoami = useUnlessKept(session, data);
  const api = useMemo(
    () => (whoami === undefined ? undefined : { ...gateway, whoami, session }),
    [gateway, whoami, session],
  );
  if (api === undefined) {
    if (error === null) return <Skeleton />;
    if (faultKind(error) !== 'no-scope')
      return <Notice tone="failed">{faultSentence(error)} Trying again every 5 seconds.</Notice>;
    return (
      <Notice
        tone="failed"
        action={
          <Button small onClick={() => signOut({ client: gateway.client, session })}>
            Sign out
          </Button>
        }
      >
        {faultSentence(error)}
      </Notice>
    );
  }
  return (
    <ApiContext value={api}>
      <Shell>
        <Pages />
      </Shell>
    </ApiContext>
  );
}

function Pages() {
  const [location] = useLocation();
  return (
    <PageErrorBoundary key={location}>
      <PlainTitle />
      <Suspense fallback={<Skeleton />}>
        <Switch>
          {ROUTES.map(({ path, page: Page }) => (
            <Route key={path} path={path}>
              {(params) => <Page params={params} />}
            </Route>
          ))}
          <Route>
            <EmptyState
              title="There is no such page"
              action={<ButtonLink href="/">To the overview</ButtonLink>}
            />
          </Route>
        </Switch>
      </Suspense>
    </PageErrorBoundary>
  );
}

/** The title of a page that sets none, where that of the page before would stay. The others set theirs in an effect, which is later. */
function PlainTitle() {
  useLayoutEffect(() => {
    document.title = 'Tollgate';
  }, []);
  return null;
}
