/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { BulkBar } from '../../../src/console/pages/keys/bulk/bulk-bar.tsx';
import { useKeySelection } from '../../../src/console/pages/keys/bulk/key-selection.tsx';
import type { ListedKey } from '../../../src/console/pages/keys/key-model.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
const user = userEvent.setup();

const FILTER = {};

function List() {
  const selection = useKeySelection(FILTER);
  const box = (consumerApiKeyId: string) =>
    selection.column?.cell({ consumerApiKeyId, name: consumerApiKeyId } as ListedKey);
  return (
    <>
      <search>
        <select aria-label="State" />
      </search>
      {box('a')}
      {box('b')}
      <BulkBar selection={selection} filter={FILTER} total={2} />
    </>
  );
}

const bar = () => screen.queryByRole('region', { name: 'Selected keys' });

it.each([
  ['keys that are deleted are no longer selected', 'delete', false],
  ['keys that are disabled stay selected', 'disable', true],
])('%s', async (_name, action, isSelected) => {
  gateway.respond(({ method, body }) => {
    if (method === 'GET')
      return { status: 200, body: { state: 'done', done: 2, total: 2, failedCount: 0, failed: [] } };
    if (JSON.parse(body).dryRun === true)
      return { status: 200, body: { dryRun: true, total: 2, notFound: 0 } };
    return { status: 201, body: { jobId: 'job_1' } };
  });
  gateway.render(['keys:read', 'keys:write', 'keys:delete'], <List />);
  await user.click(screen.getByLabelText('Select a'));
  await user.click(screen.getByLabelText('Select b'));
  await user.click(screen.getByRole('button', { name: 'Change selected…' }));
  await user.selectOptions(await screen.findByLabelText('Action'), action);
  await user.click(screen.getByRole('button', { name: 'Check first' }));
  await user.click(await screen.findByRole('button', { name: /: 2 keys$/ }));
  await screen.findByText('2 of 2 keys. Done.');
  await user.click(screen.getAllByRole('button', { name: 'Close' }).at(-1) as HTMLElement);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(bar() !== null).toBe(isSelected);
});

it('the bar of selected keys gives its focus to a filter when the selection is cleared', async () => {
  gateway.render(['keys:write'], <List />);
  await user.click(screen.getByLabelText('Select a'));
  await user.click(screen.getByRole('button', { name: 'Clear selection' }));
  expect(bar()).toBeNull();
  expect(document.activeElement).toBe(screen.getByLabelText('State'));
});
