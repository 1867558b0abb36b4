/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { BulkDialog } from '../../../src/console/pages/keys/bulk/bulk-dialog.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
const user = userEvent.setup();
beforeEach(() => {
  gateway.reply(200, { dryRun: true, total: 3, notFound: 0 });
  gateway.render(
    ['keys:delete'],
    <BulkDialog chosen={{ ids: ['a', 'b', 'c'] }} onDelete={() => undefined} onClose={() => undefined} />,
  );
});

const sent = () =>
  gateway.requests.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body));
const DELETED = { ids: ['a', 'b', 'c'], action: 'delete' };

it.each([
  ['the button', () => screen.findByRole('button', { name: 'Check first' })],
  ['the field of the reason', () => screen.findByLabelText(/^Reason/)],
])('Enter at %s checks a change of many keys, and never begins it unread', async (_where, find) => {
  (await find()).focus();
  await user.keyboard('{Enter}');
  const notice = await screen.findByText(/^This deletes 3 keys/);
  await waitFor(() => expect(document.activeElement?.contains(notice)).toBe(true));
  // The key is pressed again, or held.
  await user.keyboard('{Enter}{Enter}');
  expect(await axeFaults()).toEqual([]);
  const start = screen.getByRole('button', { name: 'Delete: 3 keys' });
  while (document.activeElement !== start) await user.tab();
  gateway.reply(201, { jobId: 'job_1' });
  await user.keyboard('{Enter}');
  await screen.findByRole('dialog', { name: 'Changing keys' });
  expect(sent()).toEqual([
    { ...DELETED, dryRun: true },
    { ...DELETED, expectCount: 3 },
  ]);
});
