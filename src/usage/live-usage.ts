import type { UsageSums } from './usage-sums.ts';

/** What one replica adds to the live counts of a key. */
export interface UsageWrite {
  readonly keyId: string;
  /** Who writes: a name that nobody else has or had, not even an earlier run of the same replica. */
  readonly writer: string;
  /**
   * Grows with every write of this writer to the key. A write whose outcome is unknown is made again with the number that it had and the
   * same sums: the store takes it once.
   */
  readonly sequence: number;
  readonly sums: UsageSums;
}

/**
 * - `written`: now or by an earlier attempt.
 * - `dropped`: the key is deleted; nothing is kept.
 * - `unknown`: the store did not answer. Make the very same write again.
 */
export type WriteOutcome = 'written' | 'dropped' | 'unknown';

/** A key whose counts are due to be moved to the history, lent to one flusher for a while. */
export interface UsageClaim {
  readonly keyId: string;
  /** Means something to the store that lent it. */
  readonly lease: string;
  /** Milliseconds by which the flusher is late. */
  readonly overdueMs: number;
}

/**
 * - `moved`: its counts are in the history now.
 * - `idle`: there were none.
 * - `failed`: try again soon.
 */
export type ClaimOutcome = 'moved' | 'idle' | 'failed';

/** Counts of a key that stand still or will, under an id that grows from one batch of the key to the next. */
export interface UsageBatch {
  readonly keyId: string;
  readonly id: number;
  readonly sums: UsageSums;
}

/**
 * The counts that are not in the history yet, shared by all replicas. For each key there are live counts, which are added to, and at
 * most one batch, which waits to be moved to the history and never changes. A key's counts have their id from the moment that the
 * first of them was written, and keep it when they become a batch.
 *
 * Whatever clients send, the counts of one key are bounded: 500 endpoints and 1000 customers, the rest under `__other__`.
 * All but `write` reject with `StoreUnavailable`; any of them may then have been carried out, and may be made again.
 */
export interface LiveUsage {
  /** Whether what is written outlives this process. If not, the history is the only safe place. */
  readonly isShared: boolean;
  /** Adds to the live counts, in the order given, each key at most once. Never rejects. */
  write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]>;
  /**
   * About `limit` keys that have been written to, and not to be had by another flusher until they are settled or
   * half a minute has passed. Empty when none is due.
   */
  claim(limit: number): Promise<readonly UsageClaim[]>;
  /** For each key its batch: the one that waits, else the live counts turned into one, else undefined. */
  takeBatches(keyIds: readonly string[]): Promise<readonly (UsageBatch | undefined)[]>;
  /** Removes batches that the history has. One that is no longer the key's is left alone. */
  dropBatches(batches: readonly UsageBatch[]): Promise<void>;
  /** Gives a waiting batch, and the live counts after it, ids above `id`; see `UsageHistory.apply`. */
  renumber(batch: UsageBatch, id: number): Promise<void>;
  /** Gives claimed keys back. */
  settle(outcomes: readonly (readonly [claim: UsageClaim, outcome: ClaimOutcome])[]): Promise<void>;
  /** The key's batch and its live counts, those that there are, as they were at one instant. */
  read(keyId: string): Promise<readonly UsageBatch[]>;
  /** Removes all counts of a deleted key and drops what replicas write late. */
  erase(keyId: string): Promise<void>;
}
