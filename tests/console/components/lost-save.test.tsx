/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { EditKeyDialog } from '../../../src/console/pages/keys/change/edit-key-dialog.tsx';
import { EditPlan } from '../../../src/console/pages/plans/editor/edit-plan.tsx';
import { EditToken } from '../../../src/console/pages/tokens/edit-token.tsx';
import { EditWebhook } from '../../../src/console/pages/webhooks/edit-webhook.tsx';
import { KEY, PLAN, TOKEN, WEBHOOK } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const close = () => undefined;

const gateway = withScriptedGateway();
beforeEach(() => {
  let saves = 0;
  gateway.respond(({ method, url }) => {
    const read = url.startsWith('/consumer-api-key/') ? { ...KEY, name: 'Shop of Alice' } : TOKEN;
    if (method === 'GET') return { status: 200, body: read, headers: { etag: '"2"' } };
    // The preview of the plan.
    if (method === 'POST') return { status: 404, body: {} };
    saves += 1;
    // The gateway has saved it, and the response was lost on its way.
    if (saves === 1) return { status: 504, body: { error: 'The upstream timed out.' } };
    return { status: 412, body: { error: 'It was changed.', code: 'version_mismatch' } };
  });
});

it.each([
  ['key', 'Name', <EditKeyDialog key="key" apiKey={KEY} etag={'"1"'} onClose={close} />],
  ['token', 'Name', <EditToken key="token" token={TOKEN} onClose={close} />],
  ['webhook', 'Description', <EditWebhook key="webhook" webhook={WEBHOOK} etag={'"1"'} onClose={close} />],
  ['plan', 'Description', <EditPlan key="plan" plan={PLAN} etag={'"1"'} onDone={close} />],
])(
  'says of a %s that it may have been changed by a save whose response was lost',
  async (what, field, form) => {
    gateway.render(['tokens:write', 'webhooks:write', 'plans:write', 'keys:read', 'keys:write'], form);
    const user = userEvent.setup();
    await user.type(await screen.findByLabelText(new RegExp(`^${field}`)), ' of Alice');
    if (what === 'plan') await user.click(screen.getByRole('button', { name: 'Review changes' }));
    await user.click(screen.getByRole('button', { name: /^Save( changes)?$/ }));
    await screen.findAllByText('The upstream timed out.');
    await user.click(screen.getByRole('button', { name: /^Save( changes)?$/ }));
    await screen.findByText(new RegExp(`^This ${what} has changed since you opened it`));
    screen.getByText(/by an earlier attempt of yours to save/);
    expect(screen.queryByText(/nothing (of yours is|was) saved/i)).toBeNull();
  },
);

it('the two versions of a key are left for the form, with what was typed', async () => {
  let closed = 0;
  gateway.render(
    ['keys:read', 'keys:write'],
    <EditKeyDialog apiKey={KEY} etag={'"1"'} onClose={() => closed++} />,
  );
  const user = userEvent.setup();
  await user.type(await screen.findByLabelText(/^Owner/), 'alice');
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await screen.findAllByText('The upstream timed out.');
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await screen.findByRole('dialog', { name: /^This key has changed since you opened it/ });
  await user.keyboard('{Escape}');
  const form = await screen.findByRole('dialog', { name: 'Edit the key' });
  expect(within(form).getByLabelText<HTMLInputElement>(/^Owner/).value).toBe('alice');
  expect(closed).toBe(0);
});
