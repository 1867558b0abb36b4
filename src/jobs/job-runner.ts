import { isDeepStrictEqual } from 'node:util';
import type { AdminTokenRepository } from '../admins/admin-token-repository.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import { type ErrorCode, StoreBusy, StoreUnavailable, TollgateError } from '../errors.ts';
import type { KeyService } from '../keys/key-service.ts';
import { logChangedKeys } from '../keys/log-changed-keys.ts';
import type { Grant } from '../permissions/principal.ts';
import { isVisible } from '../permissions/visible-records.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import { type Job, type JobFailure, scopeOfAction } from './job.ts';
import type { JobStore } from './job-store.ts';

/** How long a replica has a job after its last key. If it died, another one goes on then. Milliseconds. */
const LEASE_MS = 15_000;
/** Keys of a job before it is another job's turn. */
const KEYS_AT_ONCE = 200;
/** A job with more keys has at least this number of transactions: they show how far it is, and other changes wait less for the audit log. */
const LEAST_TRANSACTIONS = 100;

/** What `JobRunner` is built from. */
export interface JobRunnerOptions {
  readonly store: JobStore;
  /** Runs work in one transaction. */
  readonly inUnit: <Result>(work: (unit: JobUnit) => Promise<Result>) => Promise<Result>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this replica among all. */
  readonly holder: string;
}

/** The people who make jobs. */
interface People {
  /** What the sessions of a person may do that have not expired. */
  grantsOf(subject: string, nowMs: number): Promise<readonly Grant[]>;
}

/**
 * What became of some keys of a job: the ids of those that were changed. `lost`: the job was cancelled, or another replica has it. `too many`:
 * none of them was changed, and fewer may be.
 */
type Moved = readonly string[] | 'lost' | 'not allowed' | 'too many';

/** The author of a job may do less than when the transaction began, which is rolled back. */
class AuthorChanged extends Error {}

/** What a job changes in one transaction. */
interface JobUnit {
  readonly jobs: Pick<JobStore, 'advance' | 'noteFailures'>;
  readonly tokens: Pick<AdminTokenRepository, 'find'>;
  readonly people: People;
  /** Changes keys. If that rejects, only its writes are rolled back. */
  attempt<Result>(
    change: (keys: Pick<KeyService, 'updateAll' | 'removeAll'>) => Promise<Result>,
  ): Promise<Result>;
}

/**
 * Works on jobs, some keys at a time. Keys are changed by the code that changes a single one, in a transaction that also moves the job
 * on: whenever a replica dies, each key is changed once or not yet. A key that can't be changed keeps no other from it.
 */
export class JobRunner {
  readonly #options: JobRunnerOptions;
  /** Most keys in a transaction. Fewer after one that took too long, and twice as many after each that did not. */
  #mostAtOnce = KEYS_AT_ONCE;
  #isStopped = false;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  /**
   * Works until no job is left that this replica may take; several take turns. Rejects if a store is unavailable: the job goes on with the
   * next call.
   */
  async run(): Promise<void> {
    while (!this.#isStopped) {
      const job = await this.#options.store.take(this.#options.holder, LEASE_MS);
      if (job === undefined) return;
      await this.#work(job);
    }
  }

  /** After the present keys, `run` resolves. */
  interrupt(): void {
    this.#isStopped = true;
  }

  async #work(job: Job): Promise<void> {
    const { store, holder, log } = this.#options;
    const keyIds = await store.keysFrom(job.id, job.done, KEYS_AT_ONCE);
    const usual = Math.ceil(job.total / LEAST_TRANSACTIONS);
    for (let start = 0; start < keyIds.length; ) {
      if (this.#isStopped) return;
      const some = keyIds.slice(start, start + Math.min(usual, this.#mostAtOnce));
      const result = await this.#change(job, some, job.done + start);
      if (result === 'too many') continue;
      if (result === 'lost') return;
      if (result === 'not allowed') {
        await store.end(job.id, holder, 'stopped');
        log.warn({ event: 'job_stopped', jobId: job.id }, 'a job lost the permission to change keys');
        return;
      }
      this.#mostAtOnce = Math.min(this.#mostAtOnce * 2, KEYS_AT_ONCE);
      logChangedKeys(log, { action: job.action, jobId: job.id }, result);
      start += some.length;
    }
    if (job.done + keyIds.length < job.total) return;
    await store.end(job.id, holder, 'done');
    log.info({ event: 'job_done', jobId: job.id, keys: job.total }, 'a job is done');
  }

  async #change(job: Job, keyIds: readonly string[], position: number): Promise<Moved> {
    try {
      return await this.#changeOnce(job, keyIds, position);
    } catch (error) {
      if (error instanceof AuthorChanged) return this.#change(job, keyIds, position);
      // A statement that takes too long takes less for fewer keys: the deletion of one may remove thousands of rows of usage.
      if (!(error instanceof StoreBusy) || keyIds.length === 1) throw error;
      this.#mostAtOnce = Math.ceil(keyIds.length / 4);
      const { log } = this.#options;
      log.warn({ err: error, jobId: job.id, keys: keyIds.length }, 'a job changes fewer keys at once');
      return 'too many';
    }
  }

  /** Throws `AuthorChanged`. */
  #changeOnce(job: Job, keyIds: readonly string[], position: number): Promise<Moved> {
    const { inUnit, holder } = this.#options;
    return inUnit(async (unit) => {
      const change = await this.#contextOf(job, unit);
      if (change === undefined) return 'not allowed';
      const step = { jobId: job.id, holder, position, keys: keyIds.length };
      if (!(await unit.jobs.advance(step, LEASE_MS))) return 'lost';
      const failures = await this.#apply(job, keyIds, { unit, change });
      if (failures.length > 0) await unit.jobs.noteFailures(step, failures);
      // The entries of the keys lock the end of the audit log until the commit, and a change of the token or the end of a session needs that
      // lock too: it is either seen here, or committed after these keys.
      const present = await this.#contextOf(job, unit);
      if (!isDeepStrictEqual(present?.onlyTags, change.onlyTags)) throw new AuthorChanged();
      const unchanged = new Set(failures.map(({ keyId }) => keyId));
      return keyIds.filter((keyId) => !unchanged.has(keyId));
    });
  }

  /** The context of the next change; undefined if its author may not make it any more. */
  async #contextOf(
    { action, change, allowedUntilMs }: Job,
    { tokens, people }: JobUnit,
  ): Promise<ChangeContext | undefined> {
    const atMs = this.#options.clock.nowMs();
    if (allowedUntilMs !== null && allowedUntilMs <= atMs) return undefined;
    const { type, id } = change.actor;
    if (type === 'person' && id !== null) {
      const grants = await people.grantsOf(id, atMs);
      const grant = grants.find(
        ({ scopes, onlyTags }) =>
          scopes.includes(scopeOfAction(action)) && isVisible(change.onlyTags, onlyTags),
      );
      return grant && { ...change, atMs };
    }
    if (type !== 'token' || id === null) return { ...change, atMs };
    const token = await tokens.find(id);
    if (token === undefined || !token.scopes.includes(scopeOfAction(action))) return undefined;
    if (token.expiresAtMs !== null && token.expiresAtMs <= atMs) return undefined;
    return { ...change, atMs, onlyTags: [...new Set([...change.onlyTags, ...token.onlyTags])] };
  }

  /** Resolves with the keys that were not changed, and why. */
  async #apply(
    job: Job,
    keyIds: readonly string[],
    { unit, change }: KeyChange,
  ): Promise<readonly JobFailure[]> {
    const failed = (code: ErrorCode) => keyIds.map((keyId) => ({ keyId, code }));
    try {
      return await unit.attempt((keys) => changeKeys(keys, job, { keyIds, change }));
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (error instanceof TollgateError) return failed(error.code);
      // One of them keeps the statement from all.
      if (keyIds.length > 1) {
        const failures: JobFailure[] = [];
        for (const keyId of keyIds) failures.push(...(await this.#apply(job, [keyId], { unit, change })));
        return failures;
      }
      this.#options.log.error({ err: error, jobId: job.id, keyIds }, 'a job could not change a key');
      return failed('internal_error');
    }
  }
}

/** Resolves with the keys that were not changed, and why. */
async function changeKeys(
  keys: Pick<KeyService, 'updateAll' | 'removeAll'>,
  { changes }: Job,
  { keyIds, change }: { readonly keyIds: readonly string[]; readonly change: ChangeContext },
): Promise<readonly JobFailure[]> {
  if (changes === null) {
    const deleted = await keys.removeAll(keyIds, change);
    return keyIds.filter((id) => !deleted.has(id)).map((keyId) => ({ keyId, code: 'key_not_found' }));
  }
  const updated = await keys.updateAll(keyIds, changes, change);
  return [...updated].flatMap(([keyId, result]) =>
    result instanceof TollgateError ? [{ keyId, code: result.code }] : [],
  );
}

interface KeyChange {
  readonly unit: JobUnit;
  readonly change: ChangeContext;
}
