import type { components } from '../../../client/management-api.ts';
import type { Listing } from '../../output/columns.ts';

/** A change of many keys, with the keys that it could not change. */
export type Job = components['schemas']['Job'];

export const JOBS: Listing<components['schemas']['JobItem']> = {
  columns: [
    { name: 'id', toCell: ({ jobId }) => jobId },
    { name: 'action', toCell: ({ action }) => action },
    { name: 'state', toCell: ({ state }) => state },
    { name: 'done', toCell: ({ done }) => done },
    { name: 'total', toCell: ({ total }) => total },
    { name: 'failed', toCell: ({ failedCount }) => failedCount },
    { name: 'reason', toCell: ({ reason }) => reason },
    { name: 'created', toCell: ({ createdAt }) => createdAt },
    { name: 'ended', toCell: ({ endedAt }) => endedAt },
  ],
  idOf: ({ jobId }) => jobId,
};

/** JSON has the failed keys; a table has how many there are of each code. */
export const JOB: Listing<Job> = {
  columns: [...JOBS.columns, { name: 'failures', toCell: ({ failed }) => failuresOf(failed) }],
  idOf: JOBS.idOf,
};

function failuresOf(failed: Job['failed']): string {
  const byCode = Map.groupBy(failed, ({ code }) => code);
  return [...byCode].map(([code, keys]) => `${code} ${keys.length}`).join(', ');
}
