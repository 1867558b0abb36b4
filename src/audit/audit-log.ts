import type { ErrorCode } from '../errors.ts';
import type { AuditAction, AuditEntry, AuditedAction } from './audit-entry.ts';
import type { ChangeContext } from './change-context.ts';

/** Selects the entries to read. A missing field selects all. */
export interface AuditFilter {
  /** Inclusive. Milliseconds since 1970. */
  readonly fromMs?: number;
  /** Exclusive. Milliseconds since 1970. */
  readonly toMs?: number;
  readonly action?: AuditAction;
  /** The id of an admin token or a key, or `root` or `config`. */
  readonly actorId?: string;
  readonly targetId?: string;
  readonly outcome?: ErrorCode;
  /** Only entries whose target has all of these tags. */
  readonly onlyTags?: readonly string[];
}

/** A part of the log, newest first. */
export interface AuditPage {
  readonly limit: number;
  /** Only entries before this one in the chain. */
  readonly beforeSequence?: number;
}

/** The result of verifying the chain. */
export interface ChainReport {
  readonly isValid: boolean;
  /** The number of entries that were verified. */
  readonly entries: number;
  /** The sequence number of the first entry that was changed, added or removed later; undefined if there is none. */
  readonly firstBroken: number | undefined;
  /** The hash of the last entry, hexadecimal. Kept elsewhere, it can prove later that the log up to here is unchanged. */
  readonly lastHash: string;
}

/**
 * The audit log, without the entries of changes to records: repositories write those together with the change. Every method rejects with
 * `StoreUnavailable` if the store does not respond.
 */
export interface AuditLog {
  /** Writes an entry for an action that changes no record, such as showing a secret or rejecting a request. */
  record(action: AuditedAction, change: ChangeContext): Promise<void>;
  /**
   * For a change outside of the record store: writes the entry, and then runs `work`, which makes the change. No change is made without an
   * entry, not even in a crash. If `work` fails, a second entry says so: the change may or may not have been made.
   */
  accompany(action: AuditedAction, change: ChangeContext, work: () => Promise<void>): Promise<void>;
  list(filter: AuditFilter, page: AuditPage): Promise<readonly AuditEntry[]>;
  count(filter: AuditFilter): Promise<number>;
  /** Compares every entry with its hash, and checks that each hash continues the previous one. */
  verify(): Promise<ChainReport>;
  /** Removes the oldest entries, made before the instant. The others remain a valid chain. Resolves with the number removed. */
  prune(beforeMs: number): Promise<number>;
}
