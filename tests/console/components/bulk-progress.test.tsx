/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { cleanup, screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { BulkProgress } from '../../../src/console/pages/keys/bulk/bulk-progress.tsx';
import { RunningJobs } from '../../../src/console/pages/keys/bulk/running-jobs.tsx';
import { axeFaults } from './support/axe-faults.ts';
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

it('a change of many keys that was stopped speaks of no token: a person may have begun it', async () => {
  const job = { jobId: 'job_1', state: 'stopped', done: 1, total: 2, failedCount: 0, failed: [] };
  gateway.reply(200, job);
  gateway.render(['keys:read'], <BulkProgress jobId="job_1" onClose={() => undefined} />);
  await screen.findByText('1 of 2 keys. Stopped: who began it may not change keys any more.');
});

it('a change of many keys that runs is found again, with a way to cancel it', async () => {
  window.history.replaceState(null, '', '/');
  const running = {
    jobId: 'job_1',
    action: 'delete',
    state: 'running',
    done: 120,
    total: 412,
    failedCount: 0,
  };
  const ended = { ...running, jobId: 'job_0', state: 'done' };
  let job = running;
  gateway.respond(({ method, url }) => {
    if (method === 'POST') job = { ...running, state: 'cancelled' };
    const body = url.startsWith('/tollgate/job?') ? { jobs: [job, ended] } : { ...job, failed: [] };
    return { status: 200, body };
  });
  gateway.render(['keys:read', 'keys:write'], <RunningJobs />);
  const user = userEvent.setup();
  await screen.findByText('“Delete” is running for 412 keys.');
  await user.click(screen.getByRole('button', { name: 'Show progress' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Changing keys' }));
  await dialog.findByText(/^120 of 412 keys/);
  // It takes the scope of the action.
  expect(dialog.queryByRole('button', { name: 'Cancel the rest' })).toBeNull();
  expect(await axeFaults()).toEqual([]);
  // The page is loaded again.
  cleanup();
  gateway.render(['keys:read', 'keys:delete'], <RunningJobs />);
  await user.click(await screen.findByRole('button', { name: 'Cancel the rest' }));
  await screen.findByText(/Cancelled: the keys that were changed stay so/);
  // The button that had the focus has gone.
  expect(document.activeElement).toBe(screen.getByRole('dialog', { name: 'Changing keys' }));
  await user.click(screen.getAllByRole('button', { name: 'Close' }).at(-1) as HTMLElement);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  await waitFor(() => expect(screen.queryByText(/is running for/)).toBeNull());
  expect(window.location.search).toBe('');
});

it('many changes that run take no more than four lines', async () => {
  window.history.replaceState(null, '', '/');
  const jobs = Array.from({ length: 10 }, (_, index) => ({
    ...{ jobId: `job_${index}`, action: 'delete', state: 'running', done: 0, total: 1 },
    failedCount: 0,
  }));
  gateway.reply(200, { jobs });
  gateway.render(['keys:read'], <RunningJobs />);
  await screen.findByText('and 7 more');
  expect(screen.getAllByRole('status')).toHaveLength(4);
});
