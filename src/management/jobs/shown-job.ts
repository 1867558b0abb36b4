import { SHOWN_FAILURES } from '../../jobs/bulk-jobs.ts';
import { JOB_ACTIONS, JOB_STATES, type Job, type JobFailure } from '../../jobs/job.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { ResponseSchema } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';

const ITEM_FIELDS = {
  jobId: TEXT,
  action: { type: 'string', enum: JOB_ACTIONS },
  state: {
    type: 'string',
    enum: JOB_STATES,
    description: '"stopped": the token or the person that began it may not change keys any more.',
  },
  done: { ...COUNT, description: 'The keys that were dealt with: changed, or failed.' },
  total: COUNT,
  failedCount: COUNT,
  reason: { ...orNull(TEXT), description: 'From the header X-Audit-Reason.' },
  createdAt: INSTANT,
  endedAt: { ...orNull(INSTANT), description: 'Null while it runs.' },
} as const satisfies Readonly<Record<string, ResponseSchema>>;

/** A job in a list. */
export const JOB_ITEM = named('JobItem', objectOf(ITEM_FIELDS));

/** A job with the keys that it could not change. */
export const JOB = named(
  'Job',
  objectOf({
    ...ITEM_FIELDS,
    failed: {
      ...listOf(named('JobFailure', objectOf({ consumerApiKeyId: TEXT, code: TEXT }))),
      description: `The keys that were not changed, each with the code of its error; at most ${SHOWN_FAILURES}.`,
    },
  }),
);

export function presentJobItem({ id, action, state, done, total, failed, change, endedAtMs }: Job): object {
  return {
    jobId: id,
    ...{ action, state, done, total },
    failedCount: failed,
    reason: change.reason,
    createdAt: isoSeconds(change.atMs),
    endedAt: isoSecondsOrNull(endedAtMs),
  };
}

export function presentJob({
  job,
  failures,
}: {
  readonly job: Job;
  readonly failures: readonly JobFailure[];
}): object {
  const failed = failures.map(({ keyId, code }) => ({ consumerApiKeyId: keyId, code }));
  return { ...presentJobItem(job), failed };
}
