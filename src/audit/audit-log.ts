import type { AuditAction, AuditEntry, AuditedAction } from './audit-entry.ts';
import type { ChangeContext } from './change-context.ts';

/** Which entries are read; a missing field leaves none out. */
export interface AuditFilter {
  /** Included. Milliseconds since 1970. */
  readonly fromMs?: number;
  /** Excluded. */
  readonly toMs?: number;
  readonly action?: AuditAction;
  /** Of an admin token or a key, or `root` or `config`. */
  readonly actorId?: string;
  readonly targetId?: string;
  /** Only entries about what has all of these tags. */
  readonly onlyTags?: readonly string[];
}

/** A part of the log, newest first. */
export interface AuditPage {
  readonly limit: number;
  /** Only entries before this one in the chain. */
  readonly beforeSequence?: number;
}

/** Whether the entries are as they were written. */
export interface ChainReport {
  readonly isValid: boolean;
  /** Those that were looked at. */
  readonly entries: number;
  /** The place in the chain of the first entry that was changed, put in or removed; undefined when there is none. */
  readonly firstBroken: number | undefined;
  /** Of the last entry: who notes it elsewhere can tell later that the log until here is the same. Hexadecimal. */
  readonly lastHash: string;
}

/**
 * The audit log besides the entries of changes to records, which repositories write with the change. All reject with
 * `StoreUnavailable`.
 */
export interface AuditLog {
  /** Writes an entry for an action that changes no record: something was shown or rejected. */
  record(action: AuditedAction, change: ChangeContext): Promise<void>;
  /**
   * Writes the entry of something that is changed outside of the record store, and then has `work` change it. Nothing is done that can't be
   * logged, and no crash leaves a change without its entry. Where `work` fails, another entry says so: the change may or may not have been made.
   */
  accompany(action: AuditedAction, change: ChangeContext, work: () => Promise<void>): Promise<void>;
  list(filter: AuditFilter, page: AuditPage): Promise<readonly AuditEntry[]>;
  count(filter: AuditFilter): Promise<number>;
  /** Compares every entry with its hash, and its hash with the entry before. */
  verify(): Promise<ChainReport>;
  /** Removes the oldest entries that were made before the instant. What is left is still a chain. Resolves with how many went. */
  prune(beforeMs: number): Promise<number>;
}
