/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { screen, waitFor, within } from '@testing-library/react';
import { type UserEvent, userEvent } from '@testing-library/user-event';
import { WebhookPage } from '../../../src/console/pages/webhook-page.tsx';
import { WEBHOOK } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
let reading: PromiseWithResolvers<void>;
let user: UserEvent;
beforeEach(() => {
  reading = Promise.withResolvers<void>();
  let saved = WEBHOOK;
  gateway.respond(async ({ method, url, body }) => {
    if (method === 'PATCH') {
      saved = { ...saved, ...JSON.parse(body) };
      return { status: 200, body: saved, headers: { etag: '"2"' } };
    }
    if (url.includes('/deliveries')) return { status: 200, body: { deliveries: [] } };
    if (saved !== WEBHOOK) await reading.promise;
    return { status: 200, body: saved, headers: { etag: '"1"' } };
  });
  gateway.render(
    ['webhooks:read', 'webhooks:write', 'keys:read'],
    <WebhookPage params={{ webhookId: 'whk_1' }} />,
  );
  user = userEvent.setup();
});
afterEach(() => reading.resolve());

it('a saved webhook is shown, and can be saved again, before it has been read again', async () => {
  const save = async (text: string) => {
    await user.click(await screen.findByRole('button', { name: 'Edit' }));
    const dialog = within(await screen.findByRole('dialog'));
    await user.type(dialog.getByLabelText('Description', { exact: false }), text);
    await user.click(dialog.getByRole('button', { name: 'Save changes' }));
  };
  await save(' of Alice');
  await screen.findByText('Chat of Alice', { selector: 'h1 *' });
  await save(' and Bob');
  await screen.findByText('Chat of Alice and Bob', { selector: 'h1 *' });
  const changes = gateway.requests.filter(({ method }) => method === 'PATCH');
  expect(changes.map(({ headers, body }) => [headers['if-match'], JSON.parse(body)])).toEqual([
    ['"1"', { description: 'Chat of Alice' }],
    ['"2"', { description: 'Chat of Alice and Bob' }],
  ]);
});

it('a header of the same name as one above is shown as a fault, and not sent', async () => {
  await user.click(await screen.findByRole('button', { name: 'Edit' }));
  const dialog = within(await screen.findByRole('dialog'));
  const save = dialog.getByRole('button', { name: 'Save changes' });
  for (const [place, name] of [' X-Team', 'x-team '].entries()) {
    await user.click(dialog.getByRole('button', { name: 'Add header' }));
    await user.type(dialog.getByLabelText(`Name of header ${place + 1}`), name);
    await user.type(dialog.getByLabelText(`Value of header ${place + 1}`), `value ${place}`);
  }
  await user.click(save);
  const repeated = dialog.getByLabelText('Name of header 2');
  expect(document.activeElement).toBe(repeated);
  expect(repeated.getAttribute('aria-invalid')).toBe('true');
  const describedBy = repeated.getAttribute('aria-describedby') ?? '';
  expect(document.getElementById(describedBy)?.textContent).toBe('A header above has this name.');
  expect(gateway.requests.filter(({ method }) => method === 'PATCH')).toEqual([]);
  await user.type(repeated, '{Backspace}s');
  expect(repeated.getAttribute('aria-invalid')).toBe('false');
  await user.click(save);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  const [change] = gateway.requests.filter(({ method }) => method === 'PATCH');
  expect(JSON.parse(change?.body ?? '').headers).toEqual({ 'X-Team': 'value 0', 'x-teams': 'value 1' });
});

it('a disabled webhook is shown as disabled before it has been read again', async () => {
  await user.click(await screen.findByRole('button', { name: 'More actions' }));
  await user.click(await screen.findByRole('menuitem', { name: 'Disable' }));
  await user.click(await screen.findByRole('button', { name: 'Disable webhook' }));
  await screen.findByText('Disabled', { selector: 'h1 *' });
  expect(screen.queryByRole('button', { name: /test/i })).toBeNull();
});
