// The room `console`: the web console, which runs in the browser.
// In: what an administrator clicks and types, and responses of the management interface.
// Out: pages, and calls of the management interface with the token of the tab.

import { QueryClientProvider, useQuery } from '@tanstack/react-query';
import { Suspense, useEffect, useMemo, useSyncExternalStore } from 'react';
import { Route, Router, Switch, useLocation } from 'wouter';
import { bodyOf } from '../client/management-client.ts';
import { ApiContext } from './api/api-context.tsx';
import { faultKind, faultSentence } from './api/fault-kind.ts';
import { connectGateway, type Gateway } from './api/gateway-client.ts';
import { pollAfter } from './api/live.ts';
import { createQueryClient } from './api/query-client.ts';
import type { SessionStore } from './api/session-store.ts';
import { Button, ButtonLink } from './components/forms/button.tsx';
import { EmptyState } from './components/states/empty-state.tsx';
import { Notice } from './components/states/notice.tsx';
import { Skeleton } from './components/states/skeleton.tsx';
import { ToastRegion } from './components/states/toast.tsx';
import { SignInPage } from './pages/sign-in-page.tsx';
import { ROUTES } from './routes.tsx';
import { PageErrorBoundary } from './shell/page-error-boundary.tsx';
import { Shell } from './shell/shell.tsx';

const BASE = '/tollgate/console';

/** The whole console: the sign-in page, or the pages for a signed-in token. */
export function App({ session }: { readonly session: SessionStore }) {
  const state = useSyncExternalStore(session.subscribe, session.current);
  return (
    <Router base={BASE}>
      {state.status === 'signed-in' ? (
        <SignedIn key={state.token} session={session} token={state.token} />
      ) : (
        <SignInPage session={session} reason={state.reason} />
      )}
      <ToastRegion />
    </Router>
  );
}

interface SignedInProps {
  readonly session: SessionStore;
  readonly token: string;
}

/** Has its own client and cache for each token, so that no data outlasts the session that may see it. */
function SignedIn({ session, token }: SignedInProps) {
  const gateway = useMemo(() => connectGateway(token, () => session.expire(token)), [session, token]);
  const queries = useMemo(createQueryClient, []);
  useEffect(() => () => gateway.feed.close(), [gateway]);
  return (
    <QueryClientProvider client={queries}>
      <WithWhoami session={session} gateway={gateway} />
    </QueryClientProvider>
  );
}

interface WithWhoamiProps {
  readonly session: SessionStore;
  readonly gateway: Gateway;
}

function WithWhoami({ session, gateway }: WithWhoamiProps) {
  const { data: whoami, error } = useQuery({
    queryKey: ['whoami'],
    queryFn: async ({ signal }) => {
      const found = await bodyOf(gateway.client.GET('/tollgate/whoami', { signal }));
      gateway.setScopes(found.scopes);
      return found;
    },
    // The scopes of a token can change while it is signed in.
    refetchInterval: ({ state }) => pollAfter(state.error, state.data === undefined ? 5000 : 60_000),
  });
  const api = useMemo(
    () => (whoami === undefined ? undefined : { ...gateway, whoami, session }),
    [gateway, whoami, session],
  );
  if (api === undefined) {
    if (error === null) return null;
    if (faultKind(error) !== 'no-scope')
      return <Notice tone="failed">{faultSentence(error)} Trying again every 5 seconds.</Notice>;
    return (
      <Notice
        tone="failed"
        action={
          <Button small onClick={() => session.signOut()}>
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
