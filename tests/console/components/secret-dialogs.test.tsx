/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import type { ReactNode } from 'react';
import { CreateKeyDialog } from '../../../src/console/pages/keys/change/create-key-dialog.tsx';
import { RotateKeyDialog } from '../../../src/console/pages/keys/change/rotate-key-dialog.tsx';
import { CreateToken } from '../../../src/console/pages/tokens/create-token.tsx';
import { RotateToken } from '../../../src/console/pages/tokens/rotate-token.tsx';
import { CreateWebhook } from '../../../src/console/pages/webhooks/create-webhook.tsx';
import { RotateWebhook } from '../../../src/console/pages/webhooks/rotate-webhook.tsx';
import { KEY, TOKEN, WEBHOOK } from './support/records.ts';
import { renderSignedIn } from './support/stage.tsx';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const SECRET = 'shown_once';

type OnClose = () => void;

const stub = withStubbedFetch();
let release: () => void;
beforeEach(() => {
  const made = Promise.withResolvers<void>();
  release = made.resolve;
  stub.respond(async ({ method }) => {
    if (method !== 'POST') return { status: 404, body: {} };
    await made.promise;
    return { status: 201, body: { id: 'key_1', name: 'App', ...WEBHOOK, secret: SECRET } };
  });
});

it.each<[string, string, (onClose: OnClose) => ReactNode]>([
  ['Create key', 'Creating…', (onClose) => <CreateKeyDialog onClose={onClose} />],
  ['Rotate key', 'Rotating…', (onClose) => <RotateKeyDialog apiKey={KEY} onClose={onClose} />],
  ['Create token', 'Creating…', (onClose) => <CreateToken onClose={onClose} />],
  ['Rotate token', 'Rotating…', (onClose) => <RotateToken token={TOKEN} onClose={onClose} />],
  ['Create webhook', 'Creating…', (onClose) => <CreateWebhook onClose={onClose} />],
  ['Rotate secret', 'Rotating…', (onClose) => <RotateWebhook webhook={WEBHOOK} onClose={onClose} />],
])('a dialog can not be closed while it makes a secret: %s', async (submit, pending, dialog) => {
  let closed = 0;
  renderSignedIn(
    [],
    dialog(() => {
      closed += 1;
    }),
  );
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: submit }));
  await screen.findByRole('button', { name: pending });
  await user.click(screen.getByRole('button', { name: 'Cancel' }));
  await user.click(document.body);
  await user.keyboard('{Escape}');
  expect(closed).toBe(0);
  expect(screen.queryByRole('button', { name: 'Close' })).toBeNull();
  release();
  await screen.findByText(SECRET);
});
