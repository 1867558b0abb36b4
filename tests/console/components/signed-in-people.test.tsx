/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { SignedInPeople } from '../../../src/console/pages/tokens/signed-in-people.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const ALICE = {
  ...{ sessionId: 'ses_1', current: true, kind: 'browser', subject: 'alice', name: 'Alice Example' },
  ...{ email: 'alice@example.com', scopes: ['keys:read'], onlyTags: [], address: '192.0.2.1' },
  createdAt: '2026-01-01T00:00:00Z',
  lastUsedAt: '2026-01-01T00:00:00Z',
  expiresAt: '2099-01-01T00:00:00Z',
};
const BOB = {
  ...{ ...ALICE, sessionId: 'ses_2', current: false, kind: 'command', subject: 'bob' },
  ...{ name: 'Bob Example', email: null, onlyTags: ['team:a'] },
};
const stub = withStubbedFetch();
beforeEach(() => {
  stub.respond(({ method }) =>
    method === 'GET'
      ? { status: 200, body: { sessions: [BOB, ALICE] } }
      : { status: 200, body: { sessionId: 'ses_2', message: 'The session has ended.' } },
  );
});
afterEach(() => {
  document.head.innerHTML = '';
});

const show = () => renderSignedIn(['tokens:write'], <SignedInPeople />);

it('lists who is signed in with the identity provider, and signs one of them out', async () => {
  document.head.innerHTML = '<meta name="tollgate-sign-in" content="login.example.com">';
  show();
  const table = await screen.findByRole('table', { name: 'signed-in people' });
  await within(table).findByText('Bob Example');
  within(table).getByText('alice@example.com');
  within(table).getByText('with team:a');
  expect(within(table).getAllByRole('button', { name: /^Sign out… / })).toHaveLength(1);
  await userEvent.click(screen.getByRole('button', { name: 'Sign out… Bob Example' }));
  const dialog = await screen.findByRole('dialog', { name: 'Sign Bob Example out?' });
  expect(await axeFaults()).toEqual([]);
  await userEvent.click(within(dialog).getByRole('button', { name: 'Sign out' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(stub.sent.map(({ call }) => call)).toContain('DELETE /tollgate/session/ses_2');
});

it('shows nothing of people where there is no identity provider', () => {
  show();
  expect(screen.queryByRole('heading')).toBeNull();
  expect(stub.sent).toEqual([]);
});
