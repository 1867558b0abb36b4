/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { render, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { SessionStore } from '../../../src/console/api/session-store.ts';
import { App } from '../../../src/console/app.tsx';
import { untilAskedAgain } from './support/patience.ts';
import { KEY, WEBHOOK } from './support/records.ts';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const SECRET = 'shown_once';
const WHOAMI = {
  ...{ type: 'token', adminTokenId: 'adm_1', sessionId: null, subject: null, name: 'Support', email: null },
  ...{ scopes: ['keys:read', 'keys:write', 'webhooks:read', 'webhooks:write', 'tokens:write'] },
  ...{ onlyTags: [], expiresAt: null, version: '1.2.3', settings: { publicPort: null } },
};
/** Every list, without a row. */
const LISTS = {
  ...{ apiKeys: [], limits: [], rateLimits: [], webhooks: [], deliveries: [], adminTokens: [], sessions: [] },
  ...{ entries: [], jobs: [], nextCursor: null },
};

const stub = withStubbedFetch();
/** What the gateway says to GET requests, by the end of their path. */
let found: Record<string, { readonly status: number; readonly body: object }>;
/** The ends of paths that were asked for. */
const asked: string[] = [];

beforeEach(() => {
  sessionStorage.clear();
  localStorage.clear();
  found = {
    whoami: { status: 200, body: WHOAMI },
    key_1: { status: 200, body: KEY },
    whk_1: { status: 200, body: { ...WEBHOOK, events: [] } },
  };
  stub.respond(({ url, method }) => {
    if (method === 'POST') return { status: 201, body: { ...KEY, ...WEBHOOK, secret: SECRET } };
    const end = new URL(url).pathname.split('/').at(-1) ?? '';
    asked.push(end);
    return found[end] ?? { status: 200, body: LISTS };
  });
});

function open(path: string): void {
  window.history.replaceState(null, '', `/tollgate/console${path}`);
  const session = new SessionStore(sessionStorage);
  session.signIn('a token', false);
  render(<App session={session} providerHost={undefined} />);
}
const press = async (name: string) => userEvent.click(await screen.findByRole('button', { name }));

const rotateKey = async () => {
  await press('Rotate');
  await press('Rotate key');
};
const rotateWebhook = async () => {
  await press('More actions');
  await userEvent.click(await screen.findByRole('menuitem', { name: 'Rotate the secret' }));
  await press('Rotate secret');
};

it.each([
  ['/keys/key_1', 403, rotateKey, 'This token may not see the key'],
  ['/keys/key_1', 404, rotateKey, 'There is no such thing here'],
  ['/webhooks/whk_1', 403, rotateWebhook, 'This token may not see the webhook'],
] as const)(
  'a secret that is shown once stays until it is kept, also if %s is %i',
  async (path, status, rotate, end) => {
    open(path);
    await rotate();
    await screen.findByText(SECRET);
    const id = path.split('/').at(-1) ?? '';
    found[id] = { status, body: { error: 'No longer.', code: 'no_longer' } };
    await untilAskedAgain(asked, id);
    screen.getByText(SECRET);
    screen.getByText('No longer.');
    await press('I have kept it');
    await screen.findByText(end);
  },
);

it.each([
  ['key', '/keys?create=true', 'Create key'],
  ['webhook', '/webhooks?create', 'Create webhook'],
  ['token', '/tokens?create', 'Create token'],
])('a secret of a new %s stays until it is kept, also if scopes are lost', async (_, path, button) => {
  open(path);
  await press(button);
  await screen.findByText(SECRET);
  found.whoami = { status: 200, body: { ...WHOAMI, scopes: ['audit:read'] } };
  await untilAskedAgain(asked, 'whoami');
  screen.getByText(SECRET);
  await press('I have kept it');
  await screen.findByText('Audit log', { selector: 'a *' });
  expect(screen.queryByText(SECRET)).toBeNull();
});
