import type { UsageBatch } from './live-usage.ts';
import type { Counts } from './usage-slice.ts';

/**
 * - `applied`: its counts were added, in the transaction that made its id the last one of its source; those of deleted keys to the usage
 *   over time alone.
 * - `applied_before`: its id is the last one of its source.
 * - `outdated`: a later one of its source was applied: the store of the live counts went back in time, and what is in this batch is in
 *   the history already.
 */
export type ApplyOutcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'applied_before' }
  | { readonly kind: 'outdated' };

/** What is kept of a key, as it was at one instant. */
export interface KeyHistory {
  /** Id of the batch that was applied last, by its source; every batch of it with a lower one has been applied too. */
  readonly lastIds: ReadonlyMap<string, number>;
  readonly totals: Readonly<Counts>;
  /** Milliseconds since 1970; null = never used. */
  readonly lastUsedAtMs: number | null;
  readonly endpoints: ReadonlyMap<string, Counts>;
  readonly customers: ReadonlyMap<string, Counts>;
}

/** The totals that are kept of some keys, all as they were at one instant. */
export interface TotalsHistory {
  /** As `lastIds` of a key, by shard. */
  readonly lastIds: ReadonlyMap<number, ReadonlyMap<string, number>>;
  /** None of a key that is unknown. */
  readonly keys: ReadonlyMap<string, KeptTotals>;
}

/** The totals that are kept of one key. */
export interface KeptTotals extends Pick<KeyHistory, 'totals' | 'lastUsedAtMs'> {
  /** As `lastIds` has it under `KEY_LAYOUT`. */
  readonly lastKeyBatch: number;
}

/** From which instants on usage over time is kept, and what time it is. Milliseconds since 1970. */
export interface UsageRetention {
  readonly nowMs: number;
  readonly hoursSinceMs: number;
  readonly daysSinceMs: number;
}

/** Where usage is kept for good. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface UsageHistory {
  /** Adds a batch, all of it or nothing. Applying it again changes nothing, so that any replica may apply one whose outcome is unknown again. */
  apply(batch: UsageBatch): Promise<ApplyOutcome>;
  /** Whether a write is in a batch that was applied. Known for a day at least. Waits for a batch of the shard that is being applied. */
  hasWrite(shard: number, writer: string, sequence: number): Promise<boolean>;
  read(keyId: string): Promise<KeyHistory>;
  /** One query. */
  readTotals(keyIds: readonly string[]): Promise<TotalsHistory>;
  /** Removes the months of which nothing is to be kept, and makes ready for the next. */
  prune(retention: UsageRetention): Promise<void>;
}
