import { isDeepStrictEqual } from 'node:util';
import type { ErrorCode } from '../errors.ts';
import type { Actor } from './change-context.ts';

/** All actions in the audit log. */
export const AUDIT_ACTIONS = [
  'key.create',
  'key.update',
  'key.delete',
  'key.import',
  'key.find',
  'key.rotate',
  'key.end-rotation',
  'key.show-secret',
  'key.offer-handover',
  'key.revoke-handover',
  'key.hand-over',
  'limits.reset',
  'limits.grant',
  'plan.create',
  'plan.update',
  'plan.delete',
  'token.create',
  'token.update',
  'token.delete',
  'token.rotate',
  'webhook.create',
  'webhook.update',
  'webhook.delete',
  'webhook.rotate',
  'webhook.disable',
  'webhook.test',
  'webhook.resend',
  'session.create',
  'session.end',
  'job.create',
  'job.cancel',
  'config.apply',
  'request.deny',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** The record or operation that an action was about. */
export interface AuditTarget {
  readonly type: 'key' | 'plan' | 'token' | 'session' | 'webhook' | 'job' | 'configuration' | 'operation';
  readonly id: string;
  /** The name after the action, or before a deletion. Null if it has none. */
  readonly name: string | null;
  /**
   * The tags of a key, or those that a token, a session or a webhook is limited to; otherwise empty. Principals that are limited to tags see only entries with
   * these tags.
   */
  readonly tags: readonly string[];
}

/** Fields by their names in the API, with their values before and after; null = none. Never the value of a secret. */
export type FieldChanges = Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;

/** The part of an entry that does not depend on who made the change. */
export interface AuditedAction {
  readonly action: AuditAction;
  readonly target: AuditTarget;
  readonly changes: FieldChanges;
  /** The code of the error with which the action was rejected; missing = `success`. */
  readonly outcome?: ErrorCode;
}

/** An entry of the audit log. */
export interface AuditEntry extends Omit<AuditedAction, 'outcome' | 'changes'> {
  /** Starts at 1, without gaps, in the order of the chain. */
  readonly sequence: number;
  /** Milliseconds since 1970. It may decrease a little from entry to entry, because the clocks of replicas differ. */
  readonly atMs: number;
  readonly actor: Actor;
  /** The changes (`FieldChanges`) as JSON, as they were hashed: another order of the fields would change the hash. */
  readonly changesText: string;
  readonly reason: string | null;
  readonly requestId: string;
  readonly address: string;
  /** `success`, or the code of the error with which the action was rejected. */
  readonly outcome: string;
  /** The job that made the change; null: none. */
  readonly jobId: string | null;
}

/** A record before and after a change; null = it does not exist. */
export type RecordChange<Item> =
  | readonly [before: Item | null, after: Item]
  | readonly [before: Item, after: null];

/** The part of an action that says which record was changed, and how. */
export type AuditedChange = Pick<AuditedAction, 'target' | 'changes'>;

/** The fields that differ between two states of a record; null = the record does not exist. */
export function changedFields(
  before: Readonly<Record<string, unknown>> | null,
  after: Readonly<Record<string, unknown>> | null,
): FieldChanges {
  const names = Object.keys({ ...before, ...after });
  return Object.fromEntries(
    names
      .map((name) => [name, { from: before?.[name] ?? null, to: after?.[name] ?? null }] as const)
      .filter(([, { from, to }]) => !isDeepStrictEqual(from, to)),
  );
}

/** The id of an entry. Ids sort as text in the order of the log. */
export function auditIdOf(sequence: number): string {
  return `aud_${String(sequence).padStart(16, '0')}`;
}

/** `YYYY-MM-DDThh:mm:ssZ`, with fractions where it has some, as a value before or after a change. */
export function auditedInstant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString().replace('.000Z', 'Z');
}
