/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { render, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { SessionStore } from '../../../src/console/api/session-store.ts';
import { App } from '../../../src/console/app.tsx';
import { lookAgain } from './support/patience.ts';
import { TOKEN } from './support/records.ts';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const OLD = 'tga_old';
const NEW = 'tga_new';
const GRANT = { name: 'Alice', scopes: ['tokens:write'], onlyTags: [], expiresAt: null };
const WHOAMI = {
  ...{ ...GRANT, type: 'token', adminTokenId: 'admin_1', sessionId: null, subject: null, email: null },
  ...{ version: '1.2.3', settings: {} },
};
const OWN = { ...TOKEN, ...GRANT, adminTokenId: 'admin_1' };
const ENDED = { status: 401, body: { error: 'This is no valid token.', code: 'invalid_root_token' } };

const stub = withStubbedFetch();
let valid: string;
/** The response to the rotation, which is performed before it. */
let rotated: PromiseWithResolvers<void>;

beforeEach(async () => {
  valid = OLD;
  rotated = Promise.withResolvers();
  localStorage.clear();
  stub.respond(respond);
  window.history.replaceState(null, '', '/tollgate/console/tokens');
  const session = new SessionStore(sessionStorage);
  session.signIn(OLD, true);
  render(<App session={session} providerHost={undefined} />);
  await userEvent.click(await screen.findByRole('button', { name: 'Actions for Alice' }));
  await userEvent.click(await screen.findByRole('menuitem', { name: 'Rotate…' }));
  await userEvent.click(await screen.findByRole('radio', { name: /^Now/ }));
});

async function respond({ url, method, headers }: Request) {
  if (headers.get('Authorization') !== `Bearer ${valid}`) return ENDED;
  if (method === 'POST') {
    valid = NEW;
    await rotated.promise;
    return { status: 200, body: { adminTokenId: 'admin_1', secret: NEW, previousValidUntil: null } };
  }
  return { status: 200, body: url.endsWith('/whoami') ? WHOAMI : { adminTokens: [OWN], nextCursor: null } };
}

const rotate = () => userEvent.click(screen.getByRole('button', { name: 'Rotate token' }));
const readsWith = (secret: string) =>
  stub.sent.filter(
    ({ call, headers }) =>
      call === 'GET /tollgate/admin-token' && headers.get('Authorization') === `Bearer ${secret}`,
  ).length;

it('an administrator who rotates their own token sees its secret, and stays signed in', async () => {
  rotated.resolve();
  await rotate();
  await screen.findByText(NEW);
  const before = readsWith(OLD);
  await waitFor(() => expect(readsWith(NEW)).toBeGreaterThan(0));
  expect(readsWith(OLD)).toBe(before);
  await userEvent.click(screen.getByRole('button', { name: 'I have kept it' }));
  await screen.findByRole('button', { name: 'Actions for Alice' });
  expect(new SessionStore(sessionStorage).current()).toMatchObject({ status: 'signed-in', token: NEW });
});

it('the new secret is shown although the ended one was rejected before it arrived', async () => {
  await rotate();
  await waitFor(() => expect(valid).toBe(NEW));
  const before = readsWith(OLD);
  await waitFor(() => {
    lookAgain();
    expect(readsWith(OLD)).toBeGreaterThan(before);
  });
  rotated.resolve();
  await screen.findByText(NEW);
});

it('the sign-in ends with a token that was not rotated here', async () => {
  valid = 'tga_other';
  await rotate();
  await screen.findByText(/^The token is no longer valid/);
});
