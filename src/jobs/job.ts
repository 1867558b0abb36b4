import type { AuditTarget } from '../audit/audit-entry.ts';
import type { ChangeContext } from '../audit/change-context.ts';
import type { ErrorCode } from '../errors.ts';
import type { KeyChanges } from '../keys/key-repository.ts';
import type { Scope } from '../permissions/scopes.ts';
import { idTest } from '../platform/id-maker.ts';

/** What a job may do with its keys. */
export const JOB_ACTIONS = [
  'enable',
  'disable',
  'delete',
  'add-tags',
  'remove-tags',
  'set-plan',
  'set-expiry',
  'clear-override',
] as const;

export type JobAction = (typeof JOB_ACTIONS)[number];

/**
 * - `running`: it has keys left. Some replica works on them, or soon will.
 * - `done`: each key was changed, or is among the failed ones.
 * - `cancelled`: an administrator ended it. The keys before are changed, the others are not.
 * - `stopped`: its author may not change keys any more. The rest as with `cancelled`.
 */
export const JOB_STATES = ['running', 'done', 'cancelled', 'stopped'] as const;

export type JobState = (typeof JOB_STATES)[number];

/** The scope that an action needs, as for one key. */
export function scopeOfAction(action: JobAction): Scope {
  return action === 'delete' ? 'keys:delete' : 'keys:write';
}

/** A change of many keys. */
export interface Job {
  /** `job_` and a ULID; newer jobs sort after older ones. */
  readonly id: string;
  readonly action: JobAction;
  /** Null: its keys are deleted. */
  readonly changes: KeyChanges | null;
  /** Who made it and why. Its `atMs` is when the job was made, its `jobId` the job's. */
  readonly change: ChangeContext;
  /**
   * When the access token of the program that made it ends; null for all other authors, who are looked up with each key. Milliseconds since
   * 1970.
   */
  readonly allowedUntilMs: number | null;
  readonly state: JobState;
  /** Milliseconds since 1970; null while it runs. */
  readonly endedAtMs: number | null;
  /** The number of its keys, each once. */
  readonly total: number;
  /** Its keys that were dealt with: changed, or failed. */
  readonly done: number;
  readonly failed: number;
}

/** A key that a job could not change. */
export interface JobFailure {
  readonly keyId: string;
  readonly code: ErrorCode;
}

/** Whether a text has the form of a job's id. */
export const isJobId = idTest('job_');

/** The job in the audit log. */
export function jobTarget({ id, action, change }: Pick<Job, 'id' | 'action' | 'change'>): AuditTarget {
  return { type: 'job', id, name: action, tags: change.onlyTags };
}
