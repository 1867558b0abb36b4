import type { Selectable } from 'kysely';
import type { AuditAction, AuditEntry, AuditTarget } from '../../../audit/audit-entry.ts';
import type { Actor } from '../../../audit/change-context.ts';

/** The table `audit_log`. */
export interface AuditLogTable {
  readonly sequence: number;
  readonly at: Date;
  readonly action: string;
  readonly actor_type: Actor['type'];
  readonly actor_id: string | null;
  readonly actor_name: string;
  readonly actor_email: string | null;
  readonly target_type: string;
  readonly target_id: string;
  readonly target_name: string | null;
  readonly target_tags: readonly string[];
  readonly changes: string;
  readonly reason: string | null;
  readonly request_id: string;
  readonly address: string;
  readonly outcome: string;
  readonly job_id: string | null;
  readonly key_id: Uint8Array;
  readonly previous_hash: Uint8Array;
  readonly hash: Uint8Array;
}

/** The table `audit_log_ends`: one row. */
export interface AuditLogEndsTable {
  readonly last_sequence: number;
  readonly last_hash: Uint8Array;
  readonly last_mac: Uint8Array;
  readonly pruned_sequence: number;
  readonly pruned_hash: Uint8Array;
  readonly pruned_mac: Uint8Array;
  readonly reported_at: Date | null;
  readonly last_event: number;
  readonly has_webhooks: boolean;
  readonly streamed_until: Date | null;
  /** Whether usage is kept for a webhook, which may be disabled at present. */
  readonly hears_usage: boolean;
  readonly usage_streamed_until: Date | null;
  readonly usage_hour: Date | null;
  readonly usage_key: string;
}

/** The table `audit_log_keys`. */
export interface AuditLogKeysTable {
  readonly key_id: Uint8Array;
  readonly sealed: Uint8Array;
}

/** The actor in a row of the log, or of another table with the same columns. */
export function actorOfRow(
  row: Pick<Selectable<AuditLogTable>, 'actor_type' | 'actor_id' | 'actor_name' | 'actor_email'>,
): Actor {
  const { actor_type: type, actor_id: id, actor_name: name, actor_email: email } = row;
  return { type, id, name, ...(email !== null && { email }) };
}

/** The columns of an actor. */
export function actorColumns({ type, id, name, email }: Actor) {
  return { actor_type: type, actor_id: id, actor_name: name, actor_email: email ?? null };
}

/** The entry in a row. */
export function entryOfRow(row: Selectable<AuditLogTable>): AuditEntry {
  return {
    sequence: row.sequence,
    atMs: row.at.getTime(),
    // A later version may have written an action or a target type that this one does not know.
    action: row.action as AuditAction,
    actor: actorOfRow(row),
    target: {
      type: row.target_type as AuditTarget['type'],
      id: row.target_id,
      name: row.target_name,
      tags: row.target_tags,
    },
    changesText: row.changes,
    reason: row.reason,
    requestId: row.request_id,
    address: row.address,
    outcome: row.outcome,
    jobId: row.job_id,
  };
}
