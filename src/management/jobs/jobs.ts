import { InvalidCursor, MissingScope } from '../../errors.ts';
import { isJobId, scopeOfAction } from '../../jobs/job.ts';
import type { Endpoint } from '../endpoint.ts';
import { readCursor, writeCursor } from '../page-cursor.ts';
import { COUNTED_PAGE_QUERY, isCounted, readPage } from '../page-query.ts';
import { COUNT, listOf } from '../response-schemas.ts';
import { JOB, JOB_ITEM, presentJob, presentJobItem } from './shown-job.ts';

/** Lists the jobs of the last days, newest first. */
export const listJobs: Endpoint = {
  method: 'get',
  path: '/tollgate/job',
  operationId: 'listJobs',
  summary: 'List the changes of many keys, newest first',
  scope: 'keys:read',
  query: COUNTED_PAGE_QUERY,
  status: 200,
  response: {
    type: 'object',
    required: ['jobs'],
    properties: {
      jobs: listOf(JOB_ITEM),
      nextCursor: { type: 'string', description: 'Present only when there are more jobs.' },
      total: { ...COUNT, description: 'With count=true: the jobs on all pages.' },
    },
  },
  errors: ['invalid_cursor'],
  async handle({ query, principal: { onlyTags } }, { jobs }) {
    const { limit, cursor } = readPage(query);
    const before = cursor === undefined ? {} : { beforeId: jobIdOf(cursor) };
    // Before the list is read: nothing would handle a rejection of that if this throws.
    const isWithTotal = isCounted(query);
    const [found, total] = await Promise.all([
      // One more than requested shows whether there is a next page.
      jobs.list({ onlyTags, limit: limit + 1, ...before }),
      isWithTotal ? jobs.count(onlyTags) : undefined,
    ]);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return {
      jobs: page.map(presentJobItem),
      ...(found.length > limit && last !== undefined && { nextCursor: writeCursor([last.id], NO_FILTER) }),
      ...(total !== undefined && { total }),
    };
  },
};

/** The query of every page's cursor: the list has no filter. */
const NO_FILTER = {};

function jobIdOf(cursor: string): string {
  const [jobId] = readCursor(cursor, NO_FILTER);
  if (typeof jobId === 'string' && isJobId(jobId)) return jobId;
  throw new InvalidCursor();
}

/** Shows how far a job is. */
export const showJob: Endpoint = {
  method: 'get',
  path: '/tollgate/job/{jobId}',
  operationId: 'showJob',
  summary: 'Show the progress of a change of many keys',
  scope: 'keys:read',
  status: 200,
  response: JOB,
  errors: ['job_not_found'],
  async handle({ id, principal: { onlyTags } }, { jobs }) {
    return presentJob(await jobs.get(id, onlyTags));
  },
};

/** Ends a job between two keys. */
export const cancelJob: Endpoint = {
  method: 'post',
  path: '/tollgate/job/{jobId}/cancel',
  operationId: 'cancelJob',
  summary: 'End a change of many keys; what it has changed stays',
  // Beside the scope of the job's action.
  scope: 'keys:read',
  status: 200,
  response: JOB,
  errors: ['job_not_found'],
  async handle({ id, principal, change }, { jobs, log }) {
    const { job } = await jobs.get(id, principal.onlyTags);
    const scope = scopeOfAction(job.action);
    if (!principal.scopes.has(scope)) throw new MissingScope(scope);
    const { state } = await jobs.cancel(id, change);
    log.info({ event: 'job_cancelled', jobId: id, state }, 'a job was cancelled');
    return presentJob(await jobs.get(id, principal.onlyTags));
  },
};
