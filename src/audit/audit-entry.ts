import { isDeepStrictEqual } from 'node:util';
import type { ErrorCode } from '../errors.ts';
import type { Actor } from './change-context.ts';

/** Everything that the audit log tells apart. */
export const AUDIT_ACTIONS = [
  'key.create',
  'key.update',
  'key.delete',
  'key.import',
  'key.find',
  'key.rotate',
  'key.end-rotation',
  'key.show-secret',
  'limits.reset',
  'limits.grant',
  'plan.create',
  'plan.update',
  'plan.delete',
  'token.create',
  'token.update',
  'token.delete',
  'token.rotate',
  'request.deny',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What an action was about. */
export interface AuditTarget {
  readonly type: 'key' | 'plan' | 'token' | 'operation';
  readonly id: string;
  /** As it was after the action; before it where it was deleted. Null: it has none. */
  readonly name: string | null;
  /** Of a key, or to which a token is limited: who may see only keys with certain tags sees only entries with them. Empty for all others. */
  readonly tags: readonly string[];
}

/** Fields by their names in the API, each with its values before and after; null = none. Never the value of a secret. */
export type FieldChanges = Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>>;

/** Something to be written into the audit log, besides who did it. */
export interface AuditedAction {
  readonly action: AuditAction;
  readonly target: AuditTarget;
  readonly changes: FieldChanges;
  /** Missing: `success`. Else the code of the error with which the action was rejected. */
  readonly outcome?: ErrorCode;
}

/** An entry of the audit log. */
export interface AuditEntry extends Omit<AuditedAction, 'outcome'> {
  /** From 1 on, without gaps, in the order of the chain. */
  readonly sequence: number;
  /** Milliseconds since 1970. Replicas have clocks of their own: it may go back a little from entry to entry. */
  readonly atMs: number;
  readonly actor: Actor;
  readonly reason: string | null;
  readonly requestId: string;
  readonly address: string;
  /** `success`, or the code of the error with which the action was rejected. */
  readonly outcome: string;
}

/** The fields that differ between two states of something; null = it does not exist. */
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
