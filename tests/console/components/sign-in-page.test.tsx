/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import type { ComponentProps } from 'react';
import { readProviderSignIn, takeFailedSignIn } from '../../../src/console/api/provider-sign-in.ts';
import { SessionStore } from '../../../src/console/api/session-store.ts';
import { SignInPage } from '../../../src/console/pages/sign-in-page.tsx';
import { SIGN_IN_OUTCOMES } from '../../../src/sign-in/sign-in-failure.ts';
import { axeFaults } from './support/axe-faults.ts';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const HOST = 'login.example.com';
const stub = withStubbedFetch();
beforeEach(() => {
  sessionStorage.clear();
  document.title = 'Acme production · Tollgate';
  window.history.replaceState(null, '', '/tollgate/console/keys?q=a%26b');
  stub.respond(() => ({ status: 401, body: { error: 'unknown', code: 'invalid_root_token' } }));
});
afterEach(() => {
  document.head.innerHTML = '';
});

function show(props: Partial<ComponentProps<typeof SignInPage>> = {}): SessionStore {
  const session = new SessionStore(sessionStorage);
  render(
    <SignInPage session={session} reason="none" failure={undefined} providerHost={undefined} {...props} />,
  );
  return session;
}

it('the sign-in page asks for a token alone where there is no identity provider', async () => {
  expect(readProviderSignIn()).toBeUndefined();
  show();
  expect(screen.queryByRole('link')).toBeNull();
  expect(document.activeElement).toBe(screen.getByLabelText('Token'));
  expect(document.title).toBe('Sign in · Tollgate');
  await userEvent.click(screen.getByRole('button', { name: 'Sign in' }));
  await screen.findByText('Enter a token.');
  expect(stub.sent).toEqual([]);
});

it('the sign-in page does not know a token that fits in no header, such as one cut short', async () => {
  show();
  await userEvent.type(screen.getByLabelText('Token'), 'tga_…1234');
  await userEvent.click(screen.getByRole('button', { name: 'Sign in' }));
  const alert = await screen.findByText(/^The gateway does not /);
  expect(alert.textContent).toBe('The gateway does not know this token, or it has expired.');
});

it('the sign-in page keeps the focus, and sends nothing again, while it works', async () => {
  const { promise: response, resolve } = Promise.withResolvers<{ status: number; body: object }>();
  stub.respond(() => response);
  show();
  await userEvent.type(screen.getByLabelText('Token'), 'tga_wrong');
  const button = screen.getByRole('button', { name: 'Sign in' });
  button.focus();
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('true'));
  await userEvent.keyboard('{Enter}');
  expect(document.activeElement).toBe(button);
  resolve({ status: 401, body: { error: 'unknown', code: 'invalid_root_token' } });
  await screen.findByText(/^The gateway does not know/);
  expect(stub.sent).toHaveLength(1);
});

it('the sign-in page leads to the provider that the page names, and back to where one was', async () => {
  document.head.innerHTML = `<meta name="tollgate-sign-in" content="${HOST}" data-session="false">`;
  expect(readProviderSignIn()).toEqual({ host: HOST, hasSession: false });
  show({ providerHost: HOST });
  const link = screen.getByRole('link', { name: `Sign in with ${HOST}` });
  const url = new URL(link.getAttribute('href') ?? '', 'http://gateway');
  expect(url.origin + url.pathname).toBe('http://gateway/tollgate/sign-in');
  expect([...url.searchParams]).toEqual([['return', '/tollgate/console/keys?q=a%26b']]);
  expect(screen.getByLabelText('Token')).not.toBeNull();
  expect(await axeFaults()).toEqual([]);
});

it('the sign-in page says that the root token is off where the page of the gateway does', () => {
  document.head.innerHTML = '<meta name="tollgate-sign-in" content="" data-root-token="off">';
  expect(readProviderSignIn()).toBeUndefined();
  show();
  screen.getByText('An admin token (tga_…). The root token is off in browsers.');
});

it('the sign-in page says that a root token is not accepted where the gateway rejects it', async () => {
  const error = 'The root token may not be used in a browser (ROOT_TOKEN_SIGN_IN): sign in otherwise.';
  stub.respond(() => ({ status: 403, body: { error, code: 'root_token_off' } }));
  const session = show({ providerHost: HOST });
  await userEvent.type(screen.getByLabelText('Token'), 'a-root-token');
  await userEvent.click(screen.getByRole('button', { name: 'Sign in with the token' }));
  await screen.findByText(error);
  expect(session.current()).toEqual({ status: 'signed-out', reason: 'none' });
});

it('a failed sign-in shows why, with the id of the request, and leaves the address', async () => {
  for (const outcome of SIGN_IN_OUTCOMES.filter((each) => each !== 'signed_in')) {
    window.history.replaceState(null, '', `/tollgate/console?signIn=${outcome}&requestId=r-1&q=a`);
    const failure = takeFailedSignIn();
    expect(failure).toMatchObject({ requestId: 'r-1' });
    expect(failure?.sentence).not.toContain('The sign-in failed');
    expect(window.location.pathname + window.location.search).toBe('/tollgate/console?q=a');
    expect(takeFailedSignIn()).toBeUndefined();
    show({ failure, providerHost: HOST });
    const alert = screen.getByRole('alert');
    expect(alert.textContent).toBe(`${failure?.sentence}Request id: r-1`);
    expect(await axeFaults()).toEqual([]);
    cleanup();
  }
});

it('an address that someone made up puts no text of theirs into the sign-in page', () => {
  const query = new URLSearchParams({ signIn: 'constructor', requestId: 'call +1 555 0100' });
  window.history.replaceState(null, '', `/tollgate/console?${query}`);
  expect(takeFailedSignIn()).toEqual({
    sentence: 'The sign-in failed. Begin again.',
    requestId: undefined,
  });
});

it('the sign-in page says how the last session ended', () => {
  show({ reason: 'session-ended', providerHost: HOST });
  expect(screen.getByRole('status').textContent).toContain('Your session has ended.');
  cleanup();
  show({ reason: 'token-expired', providerHost: HOST });
  expect(screen.getByRole('status').textContent).toContain('The token is no longer valid.');
  cleanup();
  show({ reason: 'signed-out', providerHost: HOST });
  expect(screen.getByRole('status').textContent).toContain(`You may still be signed in at ${HOST}.`);
});
