/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it, jest } from '@jest/globals';
import { act, render, screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { tabStorage } from '../../../src/console/api/browser-storage.ts';
import { createGatewayClient } from '../../../src/console/api/gateway-client.ts';
import { SessionStore } from '../../../src/console/api/session-store.ts';
import { App } from '../../../src/console/app.tsx';
import { applyTheme, storedTheme } from '../../../src/console/shell/theme.ts';
import { axeFaults } from './support/axe-faults.ts';
import { lookAgain } from './support/patience.ts';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const HOST = 'login.example.com';
const ALICE = {
  ...{ type: 'person', adminTokenId: null, sessionId: 'ses_1', subject: 'alice' },
  ...{ name: 'Alice Example', email: 'alice@example.com', scopes: ['keys:read'], onlyTags: [] },
  ...{ expiresAt: '2099-01-01T00:00:00Z', version: '1.2.3', settings: {} },
};
const BOB = { ...ALICE, sessionId: 'ses_2', subject: 'bob', name: 'Bob Example', email: null };
const UNAVAILABLE = { status: 503, body: { error: 'Postgres is not available.', code: 'store_unavailable' } };
const ENDED = { status: 401, body: { error: 'This is no valid session.', code: 'invalid_root_token' } };

const stub = withStubbedFetch();
beforeEach(() => {
  sessionStorage.clear();
  localStorage.clear();
  // A page without data of its own.
  window.history.replaceState(null, '', '/tollgate/console/nowhere');
  stub.respond(() => ({ status: 200, body: ALICE }));
});

async function showConsole(): Promise<void> {
  render(<App session={new SessionStore(sessionStorage, { hasSession: true })} providerHost={HOST} />);
  await screen.findByText('Alice Example');
}

it('the console is no blank page while it is not known yet who is signed in', () => {
  stub.respond(() => new Promise(() => undefined));
  const session = new SessionStore(sessionStorage, { hasSession: true });
  const { container } = render(<App session={session} providerHost={HOST} />);
  expect(container.childElementCount).toBe(1);
});

const signOut = () => userEvent.click(screen.getByRole('button', { name: 'Sign out' }));

it('the console shows who is signed in, and what they may do', async () => {
  await showConsole();
  screen.getByText('alice@example.com');
  await userEvent.click(screen.getByTitle('What you may do'));
  const dialog = await screen.findByRole('dialog', { name: 'Alice Example' });
  expect(dialog.textContent).toContain('ses_1');
  expect(dialog.textContent).toContain('keys:read');
  expect(await axeFaults()).toEqual([]);
});

it('signing out ends the session at the gateway, with requests that only the console can send', async () => {
  await showConsole();
  await signOut();
  await screen.findByRole('link', { name: `Sign in with ${HOST}` });
  screen.getByText(/You have signed out/);
  expect(stub.sent.map(({ call }) => call)).toEqual([
    'GET /tollgate/whoami',
    'DELETE /tollgate/session/current',
  ]);
  for (const { headers, credentials } of stub.sent) {
    expect(headers.get('Tollgate-Console')).toBe('1');
    expect(headers.has('Authorization')).toBe(false);
    expect(credentials).toBe('same-origin');
  }
});

it('a request with a token has no cookie beside it', async () => {
  await createGatewayClient('tga_secret', () => undefined).GET('/tollgate/whoami');
  const [request] = stub.sent;
  expect(request?.headers.get('Authorization')).toBe('Bearer tga_secret');
  expect(request?.credentials).toBe('omit');
});

it('a person whose session could not be ended stays signed in, and sees why', async () => {
  await showConsole();
  stub.respond(({ method }) => (method === 'DELETE' ? UNAVAILABLE : { status: 200, body: ALICE }));
  await signOut();
  await screen.findAllByText('You are still signed in');
  screen.getByText('Alice Example');
  stub.respond(() => ENDED);
  await signOut();
  await screen.findByRole('link', { name: `Sign in with ${HOST}` });
  await waitFor(() => expect(screen.queryByText('You are still signed in')).toBeNull());
});

it('a session that ends within ten minutes says so, and how what is typed stays', async () => {
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  const untilShown = (look: () => void) =>
    waitFor(() => {
      lookAgain();
      look();
    });
  await showConsole();
  const link = () => screen.queryByRole('link', { name: 'Sign in again' });
  expect(link()).toBeNull();
  stub.respond(() => ({ status: 200, body: { ...ALICE, expiresAt: inMinutes(5) } }));
  await untilShown(() =>
    screen.getByText(/^Your session ends at \d\d?:\d\d.* what you have typed here stays/),
  );
  expect(link()?.getAttribute('href')).toBe('/tollgate/sign-in?return=%2Ftollgate%2Fconsole%2Fnowhere');
  expect(link()?.getAttribute('target')).toBe('_blank');
  expect(await axeFaults()).toEqual([]);
  // The same person has signed in again in the other tab.
  stub.respond(() => ({ status: 200, body: { ...ALICE, sessionId: 'ses_3' } }));
  await untilShown(() => expect(link()).toBeNull());
});

it.each([
  ['an admin', 'token', null],
  ['a person', 'person', 'ses_1'],
])('a token of %s that expires within ten minutes says so', async (_whose, type, sessionId) => {
  sessionStorage.setItem('tollgate.token', 'tga_secret');
  const expiresAt = new Date(Date.now() + 5 * 60_000).toISOString();
  stub.respond(() => ({ status: 200, body: { ...ALICE, type, sessionId, expiresAt } }));
  await showConsole();
  screen.getByText(/^Your token expires at \d\d?:\d\d/);
  expect(screen.queryByRole('link', { name: 'Sign in again' })).toBeNull();
});

it('a session that has ended leads to the sign-in page, which leads back', async () => {
  stub.respond(() => ENDED);
  render(<App session={new SessionStore(sessionStorage, { hasSession: true })} providerHost={HOST} />);
  const link = await screen.findByRole('link', { name: `Sign in with ${HOST}` });
  screen.getByText(/Your session has ended/);
  expect(link.getAttribute('href')).toBe('/tollgate/sign-in?return=%2Ftollgate%2Fconsole%2Fnowhere');
});

it('a tab shows no data of one person to another who has signed in beside it', async () => {
  await showConsole();
  const shown = screen.getByText('Alice Example');
  stub.respond(() => ({ status: 200, body: BOB }));
  await waitFor(() => {
    lookAgain();
    screen.getByText('Bob Example');
  });
  // All is new, and so is the cache.
  expect(shown.isConnected).toBe(false);
  expect(screen.queryByText('alice@example.com')).toBeNull();
});

it('a fault outside of the pages leaves no empty page', async () => {
  const fault = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  stub.respond(() => ({ status: 200, body: { ...ALICE, name: { first: 'Alice' } } }));
  render(<App session={new SessionStore(sessionStorage, { hasSession: true })} providerHost={HOST} />);
  const alert = await screen.findByRole('alert');
  within(alert).getByRole('button', { name: 'Load again' });
  expect(await axeFaults()).toEqual([]);
  fault.mockRestore();
});

it('the console works where the browser blocks site data', async () => {
  const blocked = (['localStorage', 'sessionStorage'] as const).map((storage) =>
    jest.spyOn(window, storage, 'get').mockImplementation(() => {
      throw new DOMException('Site data are blocked.', 'SecurityError');
    }),
  );
  try {
    applyTheme(storedTheme());
    const session = new SessionStore(tabStorage);
    session.signIn('tga_secret', true);
    render(<App session={session} providerHost={HOST} />);
    await screen.findByText('Alice Example');
    await userEvent.click(screen.getByRole('button', { name: 'System theme' }));
    screen.getByRole('button', { name: 'Light theme' });
    await signOut();
    await screen.findByLabelText('Token');
  } finally {
    applyTheme('system');
    for (const each of blocked) each.mockRestore();
  }
});

it('the tab of a page that sets no title has not that of the page before', async () => {
  const session = new SessionStore(sessionStorage);
  render(<App session={session} providerHost={HOST} />);
  expect(document.title).toBe('Sign in · Tollgate');
  act(() => session.signIn('tga_secret', false));
  await screen.findByText('There is no such page');
  expect(document.title).toBe('Tollgate');
});
