import type { UsageBatch } from './live-usage.ts';
import type { Counts } from './usage-slice.ts';

/**
 * - `applied`: the counts were added, in the transaction that made the batch's id the last one of its source. Counts of deleted keys were
 *   added only to the usage over time.
 * - `applied_before`: the batch's id is the last one of its source.
 * - `outdated`: a later batch of its source was applied. The store of the live counts was restored to an earlier state, and the counts are
 *   in the history already.
 */
export type ApplyOutcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'applied_before' }
  | { readonly kind: 'outdated' };

/** What is kept of a key, as it was at one instant. */
export interface KeyHistory {
  /** Id of the last applied batch, by source; all batches of the source with lower ids have been applied too. */
  readonly lastIds: ReadonlyMap<string, number>;
  readonly totals: Readonly<Counts>;
  /** Milliseconds since 1970; null = never used. */
  readonly lastUsedAtMs: number | null;
  readonly endpoints: ReadonlyMap<string, Counts>;
  readonly customers: ReadonlyMap<string, Counts>;
}

/** The totals that are kept of some keys, all as they were at one instant. */
export interface TotalsHistory {
  /** By shard: `lastIds` as in `KeyHistory`. */
  readonly lastIds: ReadonlyMap<number, ReadonlyMap<string, number>>;
  /** By key id. Unknown keys are missing. */
  readonly keys: ReadonlyMap<string, KeptTotals>;
}

/** The totals that are kept of one key. */
export type KeptTotals = Pick<KeyHistory, 'totals' | 'lastUsedAtMs'>;

/** How long usage over time is kept, in milliseconds, and what time it is, in milliseconds since 1970. */
export interface UsageRetention {
  readonly nowMs: number;
  readonly hoursKeptMs: number;
  readonly daysKeptMs: number;
}

/** Where usage is kept for good. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface UsageHistory {
  /**
   * Adds a batch, all of it or nothing. Idempotent, so that any replica may retry a batch whose outcome is unknown. `requireHeld` is called
   * between statements, and may throw: then nothing is added.
   */
  apply(batch: UsageBatch, requireHeld?: () => void): Promise<ApplyOutcome>;
  /** Whether a write is in a batch that was applied. Remembered for at least a day. Waits while a batch of the shard is being applied. */
  hasWrite(shard: number, writer: string, sequence: number): Promise<boolean>;
  read(keyId: string): Promise<KeyHistory>;
  /** One query. */
  readTotals(keyIds: readonly string[]): Promise<TotalsHistory>;
  /**
   * Removes usage that is past its retention at `nowMs` and by the clock of the store, most of it in whole months, and prepares the store for
   * the next month. Ends early once `goesOn` returns false.
   */
  prune(retention: UsageRetention, goesOn?: () => boolean): Promise<void>;
}
