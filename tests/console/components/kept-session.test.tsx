/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { act, render, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { SessionStore } from '../../../src/console/api/session-store.ts';
import { App } from '../../../src/console/app.tsx';
import { lookAgain, untilAskedAgain } from './support/patience.ts';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const SECRET = 'tga_shown_once';
const ALICE = {
  ...{ type: 'person', adminTokenId: null, sessionId: 'ses_1', subject: 'alice', name: 'Alice Example' },
  ...{ email: null, scopes: ['tokens:write'], onlyTags: [], expiresAt: '2099-01-01T00:00:00Z' },
  ...{ version: '1.2.3', settings: {} },
};
const BOB = { ...ALICE, sessionId: 'ses_2', subject: 'bob', name: 'Bob Example' };
const ENDED = { status: 401, body: { error: 'This is no valid session.', code: 'invalid_root_token' } };

const stub = withStubbedFetch();
/** Whose session the browser has. */
let person: typeof ALICE | undefined;
/** The response to the creation of a token, which is performed before it. */
let created: PromiseWithResolvers<void>;
/** Whose requests the gateway has responded to, as ids of sessions. */
const seen: string[] = [];

beforeEach(async () => {
  sessionStorage.clear();
  localStorage.clear();
  person = ALICE;
  created = Promise.withResolvers();
  stub.respond(async ({ url, method }) => {
    seen.push(person?.sessionId ?? 'none');
    if (person === undefined) return ENDED;
    if (method === 'POST') {
      await created.promise;
      return { status: 201, body: { adminTokenId: 'adm_1', name: 'Deployment', secret: SECRET } };
    }
    if (url.endsWith('/whoami')) return { status: 200, body: person };
    return { status: 200, body: { adminTokens: [], sessions: [], nextCursor: null } };
  });
  window.history.replaceState(null, '', '/tollgate/console/nowhere');
  window.history.pushState(null, '', '/tollgate/console/tokens?create');
  const session = new SessionStore(sessionStorage, { hasSession: true });
  render(<App session={session} providerHost="login.example.com" />);
  await userEvent.type(await screen.findByLabelText('Name'), 'Deployment');
});

const beginToken = async () => {
  await userEvent.click(screen.getByRole('button', { name: 'Create token' }));
  await screen.findByRole('button', { name: 'Creating…' });
};
const createToken = async () => {
  created.resolve();
  await userEvent.click(screen.getByRole('button', { name: 'Create token' }));
  await screen.findByText(SECRET);
};
/** Resolves after the page has learned of it. */
const goBack = () =>
  act(async () => {
    const { promise, resolve } = Promise.withResolvers<Event>();
    window.addEventListener('popstate', resolve, { once: true });
    window.history.back();
    await promise;
  });
/** Whether the browser asks before it leaves the page. */
const asksBeforeLeaving = () => !window.dispatchEvent(new Event('beforeunload', { cancelable: true }));
const keep = () => userEvent.click(screen.getByRole('button', { name: 'I have kept it' }));

it('a secret that is shown once outlasts the session, which ends when the secret is kept', async () => {
  await createToken();
  person = undefined;
  await untilAskedAgain(seen, 'none');
  screen.getByText(SECRET);
  await keep();
  await screen.findByText(/Your session has ended/);
  expect(screen.queryByText(SECRET)).toBeNull();
});

it('a secret that is shown once is not taken away by another person who signs in beside it', async () => {
  await createToken();
  const table = screen.getByText('No admin tokens yet');
  person = BOB;
  await untilAskedAgain(seen, 'ses_2');
  screen.getByText(SECRET);
  await keep();
  await waitFor(() => expect(table.isConnected).toBe(false));
  await screen.findByText('Bob Example');
});

it('the page is replaced for another person also if that person signs in twice', async () => {
  await createToken();
  const table = screen.getByText('No admin tokens yet');
  person = BOB;
  await untilAskedAgain(seen, 'ses_2');
  person = { ...BOB, sessionId: 'ses_4' };
  await untilAskedAgain(seen, 'ses_4');
  await keep();
  await waitFor(() => expect(table.isConnected).toBe(false));
});

it('a form stays when the same person signs in again, who may do what the new session may', async () => {
  person = { ...ALICE, sessionId: 'ses_3', scopes: ['tokens:write', 'keys:read'] };
  await waitFor(() => {
    lookAgain();
    screen.getByText('Keys', { selector: 'a *' });
  });
  expect(screen.getByLabelText<HTMLInputElement>('Name').value).toBe('Deployment');
  await createToken();
  // The session before has ended, and this one has not.
  await keep();
  await screen.findByText('Alice Example');
});

it('a session that ends while a secret is made does not take it away', async () => {
  await beginToken();
  person = undefined;
  await untilAskedAgain(seen, 'none');
  created.resolve();
  await screen.findByText(SECRET);
  await keep();
  await screen.findByText(/Your session has ended/);
});

it('Back takes no secret away that is made or shown once', async () => {
  await beginToken();
  await goBack();
  created.resolve();
  await screen.findByText(SECRET);
  await goBack();
  screen.getByText(SECRET);
  await keep();
  await waitFor(() => expect(screen.queryByText(SECRET)).toBeNull());
  expect(window.location.href).toMatch(/\/tollgate\/console\/tokens$/);
  await goBack();
  await screen.findByText('There is no such page');
});

it('the browser asks before it leaves a page that makes or shows a secret once', async () => {
  expect(asksBeforeLeaving()).toBe(false);
  await beginToken();
  expect(asksBeforeLeaving()).toBe(true);
  created.resolve();
  await screen.findByText(SECRET);
  expect(asksBeforeLeaving()).toBe(true);
  await keep();
  await waitFor(() => expect(asksBeforeLeaving()).toBe(false));
});
