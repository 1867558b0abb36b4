import { MissingScope } from '../../errors.ts';
import { isJobId, scopeOfAction } from '../../jobs/job.ts';
import type { Endpoint } from '../endpoint.ts';
import { pageSchema, readListPage } from '../list-page.ts';
import { COUNTED_PAGE_QUERY } from '../page-query.ts';
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
  response: pageSchema('jobs', JOB_ITEM),
  errors: ['invalid_cursor'],
  async handle({ query, principal: { onlyTags } }, { jobs }) {
    const { items, about } = await readListPage(query, {
      list: (page) => jobs.list({ onlyTags, ...page }),
      count: () => jobs.count(onlyTags),
      isId: isJobId,
      idOf: ({ id }) => id,
    });
    return { jobs: items.map(presentJobItem), ...about };
  },
};

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
