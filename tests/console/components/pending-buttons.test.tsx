/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { CsvButton } from '../../../src/console/components/forms/csv-button.tsx';
import { VerifyButton } from '../../../src/console/pages/audit/verify-button.tsx';
import { DeletePlan } from '../../../src/console/pages/plans/delete-plan.tsx';
import { CreatePlan } from '../../../src/console/pages/plans/editor/create-plan.tsx';
import { EditPlan } from '../../../src/console/pages/plans/editor/edit-plan.tsx';
import { PLAN } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it.each([
  [
    'Download CSV',
    <CsvButton
      key="csv"
      name="usage.csv"
      fetchCsv={(client) =>
        client.GET('/api-keys/usage', { params: { query: { format: 'csv' } }, parseAs: 'blob' })
      }
    />,
  ],
  ['Verify the log', <VerifyButton key="verify" />],
])('"%s" can keep the focus, and sends nothing again, while it works', async (name, content) => {
  const { promise: response, resolve } = Promise.withResolvers<{ status: number; body: object }>();
  gateway.respond(() => response);
  gateway.render(['usage:read', 'audit:read'], content);
  const button = await screen.findByRole('button', { name });
  button.focus();
  await userEvent.keyboard('{Enter}');
  await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('true'));
  // A browser takes the focus from a disabled button.
  expect(button.hasAttribute('disabled')).toBe(false);
  await userEvent.keyboard('{Enter}');
  resolve({ status: 500, body: { error: 'It has failed.' } });
  await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('false'));
  expect(gateway.requests).toHaveLength(1);
});

const user = userEvent.setup();
const close = () => undefined;
const press = (name: string) => user.click(screen.getByRole('button', { name }));
const type = (label: string, text: string) => user.type(screen.getByLabelText(label), text);

it.each([
  [
    'Create plan',
    'POST',
    <CreatePlan key="create" />,
    async () => {
      await type('Id', 'gold');
      await type('Requests', '100');
      await type('In each', 'day');
    },
  ],
  ['Delete plan', 'DELETE', <DeletePlan key="delete" plan={PLAN} etag={'"1"'} onClose={close} />, close],
  [
    'Save changes',
    'PATCH',
    <EditPlan key="edit" plan={PLAN} etag={'"1"'} onDone={close} />,
    async () => {
      await type('Requests', '0');
      await press('Review changes');
    },
  ],
])(
  '"%s" of a plan keeps the focus, and sends nothing again, while it works',
  async (name, method, form, fill) => {
    const { promise: response, resolve } = Promise.withResolvers<{ status: number; body: object }>();
    gateway.respond((request) => {
      if (request.method === 'GET') return { status: 200, body: { rateLimits: [{ ...PLAN, boundKeys: 0 }] } };
      return request.method === method && !request.url.endsWith('/preview')
        ? response
        : { status: 404, body: {} };
    });
    gateway.render(['plans:read', 'plans:write'], form);
    await fill();
    const button = await screen.findByRole('button', { name });
    button.focus();
    await user.keyboard('{Enter}');
    await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('true'));
    expect(button.hasAttribute('disabled')).toBe(false);
    await user.keyboard('{Enter}');
    resolve({ status: 503, body: { error: 'The database does not respond.' } });
    await waitFor(() => expect(button.getAttribute('aria-disabled')).toBe('false'));
    expect(
      gateway.requests.filter((sent) => sent.method === method && !sent.url.endsWith('/preview')),
    ).toHaveLength(1);
  },
);
