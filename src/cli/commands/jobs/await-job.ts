import { setTimeout as pause } from 'node:timers/promises';
import { bodyOf } from '../../../client/management-client.ts';
import { untilRead } from '../../api/follow-events.ts';
import type { Session } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import { JOB, type Job } from './job-listing.ts';

/** A job of a few keys ends at once; a long one is not asked about often. */
const FIRST_POLL_MS = 50;
const LONGEST_POLL_MS = 1000;
/** In a row, for some ten minutes. Without an end, a step of a pipeline would wait for a gateway that is gone. */
const MOST_FAILURES = 25;

/** Waits for the end of a job, and writes it. Throws if it did not change all of its keys. */
export async function awaitJob(started: Job, session: Session): Promise<void> {
  const job = await ended(started, session);
  await session.output.item(JOB, job);
  const fault = faultOf(job);
  if (fault !== undefined) throw fault;
}

async function ended(started: Job, session: Session): Promise<Job> {
  const { client, output } = session;
  const { jobId } = started;
  const path = { jobId };
  const read = () => bodyOf(client.GET('/tollgate/job/{jobId}', { params: { path } }));
  let job = started;
  try {
    for (
      let waitMs = FIRST_POLL_MS;
      job.state === 'running';
      waitMs = Math.min(waitMs * 2, LONGEST_POLL_MS)
    ) {
      output.progress(`${jobId}: ${job.done} of ${job.total} keys`);
      await pause(waitMs);
      job = await untilRead('The job', read, session, MOST_FAILURES);
    }
  } catch (error) {
    output.note(`The job goes on: tollgate jobs show ${jobId}`);
    throw error;
  }
  output.endProgress();
  return job;
}

function faultOf({ state, total, done, failed, failedCount }: Job): CommandFault | undefined {
  const rest = `${total - done} of ${total} keys were not reached.`;
  if (state === 'stopped')
    return new CommandFault('credentials', `The token may not change keys any more: ${rest}`);
  if (state === 'cancelled') return new CommandFault('fault', `The job was cancelled: ${rest}`);
  if (failedCount === 0) return undefined;
  const areMissing = failed.length === failedCount && failed.every(({ code }) => code === 'key_not_found');
  return areMissing
    ? new CommandFault('notFound', `${failedCount} of ${total} keys are not there.`)
    : new CommandFault('fault', `${failedCount} of ${total} keys were not changed.`);
}
