// The room `audit`: the audit log, which keeps who changed what, when and why, in a chain that shows tampering.
// In: the context of a change (`ChangeContext`), and the actions that were part of it.
// Out: entries, pages of them, and the result of a verification of the chain.

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
  readonly jobId?: string;
  readonly outcome?: ErrorCode;
  /** Only entries whose target has all of these tags. */
  readonly onlyTags?: readonly string[];
}

/** A part of the log, newest first: by time where the filter has a span of time and names nothing, otherwise by the chain. */
export interface AuditPage {
  readonly limit: number;
  /** Only entries that are older than this one, in the order of the pages. */
  readonly beforeSequence?: number;
}

/**
 * Why a chain is broken: the oldest entry is not the one that retention left; an entry is not there; it is not as it was written; it was
 * written under an encryption key that is not in `ENCRYPTION_KEY`, or under none; or the end is not the one that was written.
 */
export const CHAIN_PROBLEMS = ['beginning', 'missing', 'changed', 'unknown_key', 'end'] as const;
export type ChainProblem = (typeof CHAIN_PROBLEMS)[number];

/**
 * Whether the log continues a head that was noted before: it does; the entry there has another hash; the log ends before it; or the entry
 * was removed for its age, together with later ones, so that nothing can be said.
 */
export const EXPECTATIONS = ['met', 'other_hash', 'cut_off', 'expired'] as const;
export type Expectation = (typeof EXPECTATIONS)[number];

/** A head as it was noted before. */
export interface ExpectedHead {
  /** The number of entries ever written: the sequence number of the newest one. */
  readonly count: number;
  /** The hash of the newest entry, hexadecimal. */
  readonly hash: string;
}

/** The newest entry of the chain. Kept elsewhere, it proves later that the log up to here is unchanged and complete. */
export interface ChainHead extends ExpectedHead {
  /** When it was written, in milliseconds since 1970. Null where no entry is kept, or the chain is broken. */
  readonly atMs: number | null;
}

/** The result of verifying the chain. */
export interface ChainReport {
  /** The chain is whole, and the expectation, if there is one, is met. */
  readonly isValid: boolean;
  /** The number of entries that were verified. */
  readonly entries: number;
  /** Undefined if the chain is whole. */
  readonly problem: ChainProblem | undefined;
  /** The sequence number of the first entry that the problem concerns; undefined if the chain is whole. */
  readonly firstBroken: number | undefined;
  readonly head: ChainHead;
  /** Undefined if there is none, or the chain is broken. */
  readonly expectation: Expectation | undefined;
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
  /** Compares every entry with its hash, checks that each hash continues the previous one, and compares the chain with a noted head. */
  verify(expected?: ExpectedHead): Promise<ChainReport>;
  /** The head, if no replica has called this within the last day; else undefined. It is not verified. */
  takeDailyHead(nowMs: number): Promise<ChainHead | undefined>;
  /** The head as this replica last verified or took it. */
  readonly lastHead: ChainHead | undefined;
  /**
   * Whether the encryption keys are those of this log: its newest entry was written under one of them, or under one that was retired. True
   * for a log without entries.
   */
  hasKnownEnd(): Promise<boolean>;
  /**
   * Makes the log verifiable without the encryption keys behind the first one, whichever of them wrote it. May be repeated. Resolves with
   * the number of these keys.
   */
  retireKeys(): Promise<number>;
  /**
   * Removes the oldest entries: those that are older than `keptMs` at `nowMs` and by the clock of the store. The others remain a valid chain.
   * Ends early once `goesOn` returns false. Resolves with the number removed. Rejects if they do not verify: a change would be covered up.
   */
  prune(nowMs: number, keptMs: number, goesOn?: () => boolean): Promise<number>;
}
