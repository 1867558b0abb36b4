import type { ChangeContext } from '../audit/change-context.ts';
import type { Job, JobFailure, JobState } from './job.ts';

/** A job before its first key. */
export type NewJob = Pick<Job, 'id' | 'action' | 'changes' | 'change' | 'allowedUntilMs'>;

/** Selects the jobs of a page. */
export interface JobPage {
  /** Only jobs that are limited to all of these tags; empty: all jobs. */
  readonly onlyTags: readonly string[];
  readonly limit: number;
  /** Only jobs older than this one. */
  readonly beforeId?: string;
}

/** The next keys of a job, as the replica that works on it sees it. */
export interface JobStep {
  readonly jobId: string;
  readonly holder: string;
  /** Of the first of them; starts at 0. */
  readonly position: number;
  /** Their number. */
  readonly keys: number;
}

/**
 * Stores jobs. Making and cancelling one is written together with its entry in the audit log. Every method rejects with `StoreUnavailable`
 * if the store does not respond.
 */
export interface JobStore {
  /** False if `mostRunning` jobs run already. */
  insert(job: NewJob, keyIds: readonly string[], mostRunning: number): Promise<boolean>;
  find(jobId: string): Promise<Job | undefined>;
  /** The first keys that failed, in the order of the job. */
  failures(jobId: string, limit: number): Promise<readonly JobFailure[]>;
  /** Newest first. */
  list(page: JobPage): Promise<readonly Job[]>;
  /** The number of jobs that are limited to all of these tags. */
  count(onlyTags: readonly string[]): Promise<number>;
  /** Ends a running job. Once this has resolved, it changes no key. Resolves with the job; undefined if there is none. */
  cancel(jobId: string, change: ChangeContext): Promise<Job | undefined>;

  /** Takes, for a time, the job whose last turn is longest ago, of those that run and that no other replica has. Milliseconds. */
  take(holder: string, leaseMs: number): Promise<Job | undefined>;
  /** Lets other replicas take the jobs of this one. */
  release(holder: string): Promise<void>;
  /** The ids of the keys from a position on. */
  keysFrom(jobId: string, position: number, limit: number): Promise<readonly string[]>;
  /**
   * Notes that the keys are dealt with, and renews the lease. Within a unit of work: until that ends, the job can't be cancelled. False if
   * the job does not run any more, or another replica has taken it or has dealt with the keys.
   */
  advance(step: JobStep, leaseMs: number): Promise<boolean>;
  /** Notes which of the keys, which the same unit has dealt with, were not changed. */
  noteFailures(step: JobStep, failures: readonly JobFailure[]): Promise<void>;
  /** Ends a job that this replica has. */
  end(jobId: string, holder: string, state: Extract<JobState, 'done' | 'stopped'>): Promise<void>;
  /** Removes jobs that ended more than `keptMs` before `nowMs`, also by the clock of the store. Ends early once `goesOn` returns false. */
  trim(nowMs: number, keptMs: number, goesOn?: () => boolean): Promise<void>;
}
