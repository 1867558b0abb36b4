import type { RecordedUsage, UsageSlice } from './usage-slice.ts';

/** Number of shards that keys are spread over; the counts of a shard are written, moved and dropped together. */
export const SHARDS = 64;

/** The shard of a key, the same on every replica (FNV-1a). */
export function shardOf(keyId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < keyId.length; index += 1) {
    hash = Math.imul(hash ^ keyId.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % SHARDS;
}

/** What one replica adds to the live counts of a shard. */
export interface UsageWrite {
  readonly shard: number;
  /** The writer's id, unique over all replicas and over all runs of the same replica. */
  readonly writer: string;
  /**
   * Grows with every write of this writer to the shard. A write whose outcome is unknown is made again with the number that it had and
   * the same records: the store takes it once.
   */
  readonly sequence: number;
  /** The number of the writer's last write that the store has acknowledged, 0 = none yet; undefined = accept the write without this check. */
  readonly previous: number | undefined;
  readonly recorded: readonly RecordedUsage[];
}

/**
 * - `written`: now or by an earlier attempt.
 * - `unknown`: the store did not respond. Make the very same write again.
 * - `forgotten`: nothing was added, because the store has lost the writer's previous write or is another one than at an earlier attempt.
 */
export type WriteOutcome = 'written' | 'unknown' | 'forgotten';

/** Counts that are not in the history yet. Those that are taken never change any more; those that are read may still grow. */
export interface UsageBatch {
  readonly shard: number;
  /** The data set that they are in: another one when the store behind the port was restored, promoted or lost its data. */
  readonly source: string;
  /** Grows from one batch of a source to the next. The microsecond of its first count, unless clocks went back. */
  readonly id: number;
  readonly slices: readonly UsageSlice[];
  /** The last write of each writer that is in this batch or an earlier one. */
  readonly writers: ReadonlyMap<string, number>;
}

/** The source of batches of single keys, which the layout of version 0.1 left behind: their ids grow by key. */
export const KEY_LAYOUT = 'key';

/**
 * The counts that are not in the history yet, shared by all replicas. Each shard has live counts, which are added to, and at most one
 * batch a source, which waits to be moved to the history and never changes. Counts have their id from the moment that the first of
 * them was written, and keep it when they become a batch.
 *
 * All but `write` reject with `StoreUnavailable`; any of them may then have been carried out, and may be made again.
 */
export interface LiveUsage {
  /** Whether what is written outlives this process. If not, the history is the only safe place. */
  readonly isShared: boolean;
  /** Adds to the live counts, each shard at most once. Never rejects. */
  write(writes: readonly UsageWrite[]): Promise<readonly WriteOutcome[]>;
  /**
   * The batches of a shard: those that wait, else the live counts turned into one. The shard is then locked until it is
   * released, or half a minute has passed. Undefined while another replica holds the lock.
   */
  take(shard: number): Promise<readonly UsageBatch[] | undefined>;
  /** Removes a batch that the history has. One that is no longer there is no error. */
  drop(batch: UsageBatch): Promise<void>;
  /** Unlocks the shard after `afterMs` milliseconds. */
  release(shard: number, afterMs: number): Promise<void>;
  /** Holds a shard's live counts within the caps. To be called while the history is unavailable; otherwise they are moved soon. */
  compact(shard: number): Promise<void>;
  /** The counts of these keys, as they were at one instant for each shard. */
  read(keyIds: readonly string[]): Promise<readonly UsageBatch[]>;
  /** When the oldest counts that wait were begun; undefined when none wait. Milliseconds since 1970. */
  oldestAtMs(): Promise<number | undefined>;
}
