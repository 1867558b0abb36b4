/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, expect, it } from '@jest/globals';
import { cleanup, render, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { KeySecretPanel } from '../../../src/console/pages/keys/detail/key-secret-panel.tsx';
import type { KeyDetail } from '../../../src/console/pages/keys/key-model.ts';
import { SignedIn } from './support/stage.tsx';
import { respondTo } from './support/stubbed-fetch.ts';

const KEY = { consumerApiKeyId: 'key_1', secretHint: 'tg_…1234' } as KeyDetail;
const SECRET = 'tg_revealed';

afterEach(cleanup);

it('the secret of a key is read once, however often one clicks before it is shown', async () => {
  const read = Promise.withResolvers<void>();
  const stub = respondTo(async () => {
    await read.promise;
    return { status: 200, body: { ...KEY, secret: SECRET } };
  });
  try {
    render(
      <SignedIn url={window.location.origin} scopes={['keys:secret']}>
        <KeySecretPanel apiKey={KEY} />
      </SignedIn>,
    );
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
  } finally {
    stub.restore();
  }
});
