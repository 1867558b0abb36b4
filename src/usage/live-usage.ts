import type { StoreUnavailable } from '../errors.ts';
import type { RecordedUsage, UsageSlice } from './usage-slice.ts';

/** What one replica adds to the live counts of a shard. */
export interface UsageWrite {
  readonly shard: number;
  /** The writer's id, unique over all replicas and over all runs of the same replica. */
  readonly writer: string;
  /**
   * Grows with every write of this writer to the shard. A write whose outcome is unknown is retried with the same number and the same
   * records: the store counts it once.
   */
  readonly sequence: number;
  /** The sequence number of the writer's last acknowledged write to the shard, 0 = none yet; undefined = the store does not check it. */
  readonly previous: number | undefined;
  readonly recorded: readonly RecordedUsage[];
}

/**
 * - `written`: now or by an earlier attempt.
 * - `unknown`, or the failure where there is one: the store did not respond, or could not carry it out. Retry exactly the same write.
 * - `forgotten`: nothing was added, because the store has lost the writer's previous write, or can't tell whether an earlier attempt
 *   succeeded.
 */
export type WriteOutcome = 'written' | 'unknown' | StoreUnavailable | 'forgotten';

/** Counts that are not in the history yet. A batch from `take` never changes; the counts in one from `read` may still grow. */
export interface UsageBatch {
  readonly shard: number;
  /** The data set of the store that the counts are in. It is another one after a restart, a restore or a failover of the store. */
  readonly source: string;
  /** Grows from one batch of a source to the next. Microseconds since 1970 at its first count, or higher if the clock went back. */
  readonly id: number;
  readonly slices: readonly UsageSlice[];
  /** The last write of each writer that is in this batch or an earlier one. */
  readonly writers: ReadonlyMap<string, number>;
}

/**
 * The counts that are not in the history yet, shared by all replicas. Each shard has live counts, which grow, and at most one batch of each
 * source, which never changes and waits to be moved to the history. Live counts get their id with their first write, and keep it when they
 * become a batch.
 *
 * All methods but `write` reject with `StoreUnavailable`. The call may have been executed all the same, and may be retried.
 */
export interface LiveUsage {
  /** Whether what is written outlives this process. If not, the history is the only safe place. */
  readonly isShared: boolean;
  /** Adds to the live counts, each shard at most once: one that the store can't read does not keep the others from it. Never rejects. */
  write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]>;
  /**
   * Takes the batches of a shard: those that wait, else the live counts, which become one. The shard is then locked until it is released,
   * or `SHARD_LEASE_MS` have passed. Undefined while another replica holds the lock. Rejects with another error where the store can't
   * read what it has of the shard.
   */
  take(shard: number): Promise<readonly UsageBatch[] | undefined>;
  /** Removes a batch that is in the history. It is no error if the batch is gone already. */
  drop(batch: UsageBatch): Promise<void>;
  /** Locks a shard that this replica has taken for `SHARD_LEASE_MS` from now on. False if the lock has ended, or is another replica's. */
  renew(shard: number): Promise<boolean>;
  /** Unlocks the shard after `afterMs` milliseconds. */
  release(shard: number, afterMs: number): Promise<void>;
  /** Sums a shard's live counts up, within the caps. Call it while the history is unavailable; otherwise they are moved soon. */
  compact(shard: number): Promise<void>;
  /** The counts of these keys, as they were at one instant for each shard. */
  read(keyIds: readonly string[]): Promise<readonly UsageBatch[]>;
  /** When the oldest of the waiting counts had their first write; undefined if none wait. Milliseconds since 1970. */
  oldestAtMs(): Promise<number | undefined>;
}
