import type { Actor } from '../../../audit/change-context.ts';

/** The table `audit_log`. */
export interface AuditLogTable {
  readonly sequence: number;
  readonly at: Date;
  readonly action: string;
  readonly actor_type: Actor['type'];
  readonly actor_id: string | null;
  readonly actor_name: string;
  readonly target_type: string;
  readonly target_id: string;
  readonly target_name: string | null;
  readonly target_tags: readonly string[];
  readonly changes: string;
  readonly reason: string | null;
  readonly request_id: string;
  readonly address: string;
  readonly outcome: string;
  readonly previous_hash: Uint8Array;
  readonly hash: Uint8Array;
}

/** The table `audit_log_ends`: one row. */
export interface AuditLogEndsTable {
  readonly last_sequence: number;
  readonly last_hash: Uint8Array;
  readonly pruned_sequence: number;
  readonly pruned_hash: Uint8Array;
}
