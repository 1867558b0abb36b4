/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { KeySecretPanel } from '../../../src/console/pages/keys/detail/key-secret-panel.tsx';
import { KEY } from './support/records.ts';
import { renderSignedIn } from './support/stage.tsx';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const SECRET = 'tg_revealed';

const stub = withStubbedFetch();

it('the secret of a key is read once, however often one clicks before it is shown', async () => {
  const read = Promise.withResolvers<void>();
  stub.respond(async () => {
    await read.promise;
    return { status: 200, body: { ...KEY, secret: SECRET } };
  });
  renderSignedIn(['keys:secret'], <KeySecretPanel apiKey={KEY} />);
  const user = userEvent.setup();
  const reveal = screen.getByRole('button', { name: 'Reveal' });
  await user.dblClick(reveal);
  await user.click(reveal);
  read.resolve();
  await screen.findByText(SECRET);
  expect(stub.sent).toHaveLength(1);
  await user.click(screen.getByRole('button', { name: 'Hide' }));
  await user.click(screen.getByRole('button', { name: 'Reveal' }));
  await screen.findByText(SECRET);
  expect(stub.sent).toHaveLength(2);
});

it('the button that shows the secret keeps the focus, and hides it again', async () => {
  stub.respond(() => ({ status: 200, body: { ...KEY, secret: SECRET } }));
  renderSignedIn(['keys:secret'], <KeySecretPanel apiKey={KEY} />);
  const user = userEvent.setup();
  screen.getByRole('button', { name: 'Reveal' }).focus();
  await user.keyboard('{Enter}');
  await screen.findByText(SECRET);
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Hide' }));
  await user.keyboard('{Enter}');
  expect(screen.queryByText(SECRET)).toBeNull();
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Reveal' }));
});

it('a held key hides the secret, and does not show it again', async () => {
  stub.respond(() => ({ status: 200, body: { ...KEY, secret: SECRET } }));
  renderSignedIn(['keys:secret'], <KeySecretPanel apiKey={KEY} />);
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Reveal' }));
  await screen.findByText(SECRET);
  await user.keyboard('{Enter>3/}');
  expect(screen.queryByText(SECRET)).toBeNull();
  expect(stub.sent).toHaveLength(1);
});

it('a secret that hides while its copy button has the focus gives it to the page', async () => {
  stub.respond(() => ({ status: 200, body: { ...KEY, secret: SECRET } }));
  renderSignedIn(
    ['keys:secret'],
    <main tabIndex={-1}>
      <KeySecretPanel apiKey={KEY} />
    </main>,
  );
  await userEvent.setup().click(screen.getByRole('button', { name: 'Reveal' }));
  await screen.findByText(SECRET);
  screen.getByRole('button', { name: 'Copy secret' }).focus();
  // Not by the pointer, which would take the focus with it.
  screen.getByRole('button', { name: 'Hide' }).click();
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('main')));
});

function RotatedKey() {
  const [secretHint, setHint] = useState(KEY.secretHint);
  return (
    <main tabIndex={-1}>
      <KeySecretPanel apiKey={{ ...KEY, secretHint }} />
      <button type="button" onClick={() => setHint('tg_…5678')}>
        Rotate
      </button>
    </main>
  );
}

it('a secret is no longer shown once the key has another one', async () => {
  stub.respond(() => ({ status: 200, body: { ...KEY, secret: SECRET } }));
  renderSignedIn(['keys:secret'], <RotatedKey />);
  await userEvent.setup().click(screen.getByRole('button', { name: 'Reveal' }));
  await screen.findByText(SECRET);
  // As by another administrator: the focus stays at the secret.
  screen.getByRole('button', { name: 'Rotate' }).click();
  await screen.findByText('tg_…5678');
  expect(screen.queryByText(SECRET)).toBeNull();
  expect(screen.queryByRole('button', { name: 'Copy secret' })).toBeNull();
  expect(document.activeElement).toBe(screen.getByRole('main'));
});
