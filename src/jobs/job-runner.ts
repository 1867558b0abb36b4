import type { AdminTokenRepository } from '../admins/admin-token-repository.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import { type ErrorCode, StoreUnavailable, TollgateError } from '../errors.ts';
import type { KeyService } from '../keys/key-service.ts';
import type { Grant } from '../permissions/principal.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';
import { type Job, scopeOfAction } from './job.ts';
import type { JobStore } from './job-store.ts';

/** How long a replica has a job after its last key. If it died, another one goes on then. Milliseconds. */
const LEASE_MS = 15_000;
/** Keys of a job before it is another job's turn. */
const KEYS_AT_ONCE = 200;

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

/** What a job changes in one transaction. */
interface JobUnit {
  readonly jobs: Pick<JobStore, 'advance' | 'noteFailure'>;
  readonly tokens: Pick<AdminTokenRepository, 'find'>;
  readonly people: People;
  /** Changes a key. If that rejects, only its writes are rolled back. */
  attempt(change: (keys: Pick<KeyService, 'update' | 'remove'>) => Promise<void>): Promise<void>;
}

/**
 * Works on jobs, one key after the other. Each key is changed by the code that changes a single one, in a transaction that also moves the
 * job on: whenever a replica dies, each key is changed once or not yet.
 */
export class JobRunner {
  readonly #options: JobRunnerOptions;
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

  /** After the present key, `run` resolves. */
  interrupt(): void {
    this.#isStopped = true;
  }

  async #work(job: Job): Promise<void> {
    const { store, holder, log } = this.#options;
    const keyIds = await store.keysFrom(job.id, job.done, KEYS_AT_ONCE);
    for (const [index, keyId] of keyIds.entries()) {
      if (this.#isStopped) return;
      const result = await this.#change(job, keyId, job.done + index);
      if (result === 'lost') return;
      if (result === 'not allowed') {
        await store.end(job.id, holder, 'stopped');
        log.warn({ event: 'job_stopped', jobId: job.id }, 'a job lost the permission to change keys');
        return;
      }
    }
    if (job.done + keyIds.length < job.total) return;
    await store.end(job.id, holder, 'done');
    log.info({ event: 'job_done', jobId: job.id, keys: job.total }, 'a job is done');
  }

  /** `lost`: the job was cancelled, or another replica has it. */
  #change(job: Job, keyId: string, position: number): Promise<'moved' | 'lost' | 'not allowed'> {
    const { inUnit, holder } = this.#options;
    return inUnit(async (unit) => {
      const change = await this.#contextOf(job, unit);
      if (change === undefined) return 'not allowed';
      if (!(await unit.jobs.advance({ jobId: job.id, holder, position }, LEASE_MS))) return 'lost';
      const code = await this.#apply(job, keyId, { unit, change });
      if (code !== undefined) await unit.jobs.noteFailure(job.id, position, code);
      return 'moved';
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
          scopes.includes(scopeOfAction(action)) && onlyTags.every((tag) => change.onlyTags.includes(tag)),
      );
      return grant && { ...change, atMs };
    }
    if (type !== 'token' || id === null) return { ...change, atMs };
    const token = await tokens.find(id);
    if (token === undefined || !token.scopes.includes(scopeOfAction(action))) return undefined;
    if (token.expiresAtMs !== null && token.expiresAtMs <= atMs) return undefined;
    return { ...change, atMs, onlyTags: [...new Set([...change.onlyTags, ...token.onlyTags])] };
  }

  /** Resolves with why the key was not changed; undefined if it was. */
  async #apply(job: Job, keyId: string, { unit, change }: KeyChange): Promise<ErrorCode | undefined> {
    const { log } = this.#options;
    try {
      await unit.attempt(async (keys) => {
        if (job.changes === null) await keys.remove(keyId, change);
        else await keys.update(keyId, job.changes, change);
      });
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (error instanceof TollgateError) return error.code;
      log.error({ err: error, jobId: job.id, keyId }, 'a job could not change a key');
      return 'internal_error';
    }
  }
}

interface KeyChange {
  readonly unit: JobUnit;
  readonly change: ChangeContext;
}
