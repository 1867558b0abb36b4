import type { RecordVersion } from '../record-versions.ts';

/** A changed record: a key, or a plan, which changes all keys under it. */
interface RecordName {
  readonly kind: 'key' | 'plan';
  readonly id: string;
}

/** The latest change of a record. */
export interface ChangedRecord extends RecordName {
  /** Of the record after the change; null for a deletion. */
  readonly version: number | null;
}

/** A change that a replica is about to publish. */
export interface ClaimedChange extends RecordName {
  /** Tells this change from a later one of the same record. */
  readonly changeId: string;
}

/** What was changed since an earlier read. */
export interface ChangesRead {
  /** The argument of the next read. */
  readonly position: string;
  /** Each record that was changed in a transaction which the earlier read did not see. */
  readonly changed: readonly ChangedRecord[];
  /** True if changes may be missing: this is the first read, the last one was too long ago, or the store was restored from a copy. */
  readonly mayMiss: boolean;
  /** Changes that can be claimed, 10 000 at most. */
  readonly claimable: number;
  /** Changes that have waited for their publication for longer than usual, 10 000 at most. */
  readonly waiting: number;
}

/**
 * The changes of the last hours, kept in the record store by the transactions that make them: how replicas learn of changes while the
 * shared versions are unavailable, and what the shared versions still have to get. Every method rejects with `StoreUnavailable`.
 */
export interface RecordChanges {
  /** One small query. `position` is that of the last read; undefined for the first one. */
  read(position: string | undefined): Promise<ChangesRead>;
  /**
   * Claims changes that are not published a second after they were made: those that were never tried first. Other replicas can't claim them
   * for three seconds.
   */
  claim(limit: number): Promise<readonly ClaimedChange[]>;
  /** The present versions of keys; a deleted key is missing. */
  versionsOf(keyIds: readonly string[]): Promise<readonly RecordVersion[]>;
  /** The present versions of all keys under a plan, in batches. */
  versionsUnder(planId: string): AsyncIterable<readonly RecordVersion[]>;
  /** Keeps claims for another three seconds. Resolves with false if they were over already. */
  renew(changes: readonly ClaimedChange[]): Promise<boolean>;
  /** Ends claims: the changes are published, unless the records were changed again since. Claims that are over already stay unpublished. */
  settle(changes: readonly ClaimedChange[]): Promise<void>;
  /** Ends claims: the changes could not be published, and any replica may try. */
  release(changes: readonly ClaimedChange[]): Promise<void>;
  /** Notes changes that were published without a claim, and with them earlier ones of the same records. */
  notePublished(changes: readonly ChangedRecord[]): Promise<void>;
  /**
   * Makes published changes wait again that an older copy of the shared versions may lack. Resolves with false, and does nothing, if any
   * replica has done that within the last `withinMs` milliseconds.
   */
  repeat(withinMs: number): Promise<boolean>;
  /** Removes changes that the shared versions need not get any more. Resolves with their number. */
  prune(): Promise<number>;
}
