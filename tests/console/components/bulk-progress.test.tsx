/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { BulkProgress } from '../../../src/console/pages/keys/bulk/bulk-progress.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();

it('the progress of a change of many keys says that it is not known, and tries again', async () => {
  gateway.reply(503, { error: 'Postgres is away.', code: 'unavailable' });
  gateway.render(['keys:read', 'keys:write'], <BulkProgress jobId="job_1" onClose={() => undefined} />);
  expect(screen.getByText('Starting…')).toBeTruthy();
  await screen.findByText('Postgres is away.');
  const job = { jobId: 'job_1', state: 'done', done: 2, total: 2, failedCount: 0, failed: [] };
  gateway.reply(200, job);
  await userEvent.setup().click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByText('2 of 2 keys. Done.');
});
