// The room `jobs`: changes of many keys that outlive the replica that was asked for them.
// In: which keys, and what to change, with who wants it and why.
// Out: the changes, made by the service of keys, and how far they are.

import type { ChangeContext } from '../audit/change-context.ts';
import { CountMismatch, InvalidBody, JobNotFound, PlanNotFound, TollgateError } from '../errors.ts';
import { isKeyId } from '../keys/key-id.ts';
import type { KeyFilter, KeyListStore } from '../keys/key-list.ts';
import type { KeyChanges, KeyRepository } from '../keys/key-repository.ts';
import { requireOwnTags } from '../keys/key-tags.ts';
import { isVisible } from '../permissions/visible-records.ts';
import type { UnitOfWork } from '../platform/unit-of-work.ts';
import { isJobId, type Job, type JobAction, type JobFailure } from './job.ts';
import type { JobStore } from './job-store.ts';

/** Most ids in a request. */
export const MAX_IDS = 10_000;
/** Most keys that a filter may meet. */
export const MAX_FILTERED = 100_000;
/** Most jobs that run or wait at a time. */
const MAX_RUNNING = 50;
/** Failures that a job is shown with. */
export const SHOWN_FAILURES = 1000;

/** The keys of a job: those that a filter meets when the job is made, or those with these ids. */
export type ChosenKeys = { readonly filter: KeyFilter } | { readonly ids: readonly string[] };

/** A job as it is requested. */
export interface BulkChange {
  readonly keys: ChosenKeys;
  readonly action: JobAction;
  /** Null: the keys are deleted. */
  readonly changes: KeyChanges | null;
  /** The number of keys that the author expects. */
  readonly expectCount: number | undefined;
}

/** What a job would be about. */
export interface BulkPreview {
  /** The number of keys, each once. */
  readonly total: number;
  /** Those of the ids that no key has that the author can see. */
  readonly notFound: number;
}

interface BulkJobsOptions {
  readonly store: JobStore;
  readonly keyList: Pick<KeyListStore, 'ids' | 'count'>;
  readonly keys: Pick<KeyRepository, 'planExists'>;
  readonly unit: UnitOfWork;
  readonly makeId: () => string;
  /** Called when there is a new job. */
  readonly wake: () => void;
}

/**
 * Makes, shows and cancels jobs. The keys of a job are fixed when it is made: those that the author can see then. A job is seen by those who
 * see all keys, and by those whose tags it is limited to.
 */
export class BulkJobs {
  readonly #options: BulkJobsOptions;

  constructor(options: BulkJobsOptions) {
    this.#options = options;
  }

  /** What the job would be about. Throws as `create` does. */
  async preview(wanted: BulkChange, change: ChangeContext): Promise<BulkPreview> {
    const keyIds = await this.#chosen(wanted, change);
    if (!('ids' in wanted.keys)) return { total: keyIds.length, notFound: 0 };
    const found = await this.#options.keyList.count(
      { ids: keyIds.filter(isKeyId), tags: change.onlyTags },
      change.atMs,
    );
    return { total: keyIds.length, notFound: keyIds.length - found };
  }

  /**
   * Makes a job, which begins at once. Throws `CountMismatch`, `PlanNotFound`, `InvalidBody` for a filter that too many keys meet or tags
   * that must stay, or `too_many_requests`. `allowedUntilMs` as in `Job`.
   */
  async create(
    wanted: BulkChange,
    change: ChangeContext,
    allowedUntilMs: Job['allowedUntilMs'] = null,
  ): Promise<Job> {
    const { store, unit, wake } = this.#options;
    const keyIds = await this.#chosen(wanted, change);
    const id = this.#options.makeId();
    const { action, changes } = wanted;
    const job = { id, action, changes, change: { ...change, jobId: id }, allowedUntilMs };
    if (!(await store.insert(job, keyIds, MAX_RUNNING)))
      throw new TollgateError(
        'too_many_requests',
        `There are ${MAX_RUNNING} jobs that have not ended. Wait for one of them, or cancel it.`,
      );
    await unit.afterCommit(async () => wake());
    const isEmpty = keyIds.length === 0;
    return {
      ...job,
      ...{ state: isEmpty ? 'done' : 'running', endedAtMs: isEmpty ? change.atMs : null },
      ...{ total: keyIds.length, done: 0, failed: 0 },
    };
  }

  /** Throws `JobNotFound`. */
  async get(
    jobId: string,
    onlyTags: readonly string[],
  ): Promise<{ readonly job: Job; readonly failures: readonly JobFailure[] }> {
    const job = await this.#find(jobId, onlyTags);
    const failures = job.failed === 0 ? [] : await this.#options.store.failures(jobId, SHOWN_FAILURES);
    return { job, failures };
  }

  /** Newest first. */
  list(page: Parameters<JobStore['list']>[0]): Promise<readonly Job[]> {
    return this.#options.store.list(page);
  }

  count(onlyTags: readonly string[]): Promise<number> {
    return this.#options.store.count(onlyTags);
  }

  /**
   * Ends a job. Once this has resolved, it changes no further key; what it has changed stays. A job that has ended stays as it is. Throws
   * `JobNotFound`.
   */
  async cancel(jobId: string, change: ChangeContext): Promise<Job> {
    await this.#find(jobId, change.onlyTags);
    const job = await this.#options.store.cancel(jobId, { ...change, jobId });
    if (job === undefined) throw new JobNotFound();
    return job;
  }

  async #find(jobId: string, onlyTags: readonly string[]): Promise<Job> {
    const job = isJobId(jobId) ? await this.#options.store.find(jobId) : undefined;
    if (job === undefined || !isVisible(job.change.onlyTags, onlyTags)) throw new JobNotFound();
    return job;
  }

  /** The ids of the keys, each once, after all checks that need no key. */
  async #chosen(
    { keys, changes, expectCount }: BulkChange,
    change: ChangeContext,
  ): Promise<readonly string[]> {
    if (changes !== null) requireOwnTags(changes, change, 'tags');
    const planId = changes?.planId;
    if (typeof planId === 'string' && !(await this.#options.keys.planExists(planId)))
      throw new PlanNotFound();
    const keyIds = 'ids' in keys ? [...new Set(keys.ids)] : await this.#matching(keys.filter, change);
    if (expectCount !== undefined && expectCount !== keyIds.length)
      throw new CountMismatch(expectCount, keyIds.length);
    return keyIds;
  }

  async #matching(filter: KeyFilter, { onlyTags, atMs }: ChangeContext): Promise<readonly string[]> {
    const tags = [...(filter.tags ?? []), ...onlyTags];
    const keyIds = await this.#options.keyList.ids({ ...filter, tags }, MAX_FILTERED + 1, atMs);
    if (keyIds.length <= MAX_FILTERED) return keyIds;
    throw new InvalidBody([{ field: 'filter', message: `must be met by at most ${MAX_FILTERED} keys` }]);
  }
}
