/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { KeyPage } from '../../../src/console/pages/key-page.tsx';
import { KEY } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

/** The response to a change has neither the secret nor the usage. */
const { secret: _, usage: __, ...UNSAVED } = KEY;

const gateway = withScriptedGateway();

it('a saved key is shown, and can be saved again, before it has been read again', async () => {
  const reading = Promise.withResolvers<void>();
  let saved = UNSAVED;
  gateway.respond(async ({ method, url, body }) => {
    if (method === 'PATCH') {
      saved = { ...saved, ...JSON.parse(body) };
      return { status: 200, body: saved, headers: { etag: '"2"' } };
    }
    if (url.includes('/limits')) return { status: 200, body: { limits: [] } };
    if (saved !== UNSAVED) await reading.promise;
    return { status: 200, body: { ...KEY, ...saved }, headers: { etag: '"1"' } };
  });
  gateway.render(['keys:read', 'keys:write'], <KeyPage params={{ consumerApiKeyId: 'key_1' }} />);
  const user = userEvent.setup();
  const save = async (field: string, text: string) => {
    await user.click(await screen.findByRole('button', { name: 'Edit' }));
    const dialog = within(await screen.findByRole('dialog'));
    await user.type(dialog.getByLabelText(field, { exact: false }), text);
    await user.click(dialog.getByRole('button', { name: 'Save' }));
  };
  try {
    await save('Name', ' of Alice');
    await screen.findByText('Shop of Alice', { selector: 'h1 *' });
    await save('Owner', 'alice');
    await screen.findByText('alice', { selector: 'header *' });
    const changes = gateway.requests.filter(({ method }) => method === 'PATCH');
    expect(changes.map(({ headers, body }) => [headers['if-match'], JSON.parse(body)])).toEqual([
      ['"1"', { name: 'Shop of Alice' }],
      ['"2"', { externalId: 'alice' }],
    ]);
  } finally {
    reading.resolve();
  }
});
