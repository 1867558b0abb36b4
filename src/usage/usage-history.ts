import type { UsageBatch } from './live-usage.ts';
import type { Counts, UsageSums } from './usage-sums.ts';

/**
 * - `applied`: its counts were added, in the transaction that made its id the key's last.
 * - `applied_before`: its id is the key's last.
 * - `overtaken`: the key has a higher one, `lastId`. Either somebody else applied this batch and a later one, or the clock that ids are
 *   made from went back; the store of the live counts can tell, because in the first case the batch is no longer there.
 * - `key_gone`: the key is deleted; nothing was kept.
 */
export type ApplyOutcome =
  | { readonly kind: 'applied' }
  | { readonly kind: 'applied_before' }
  | { readonly kind: 'overtaken'; readonly lastId: number }
  | { readonly kind: 'key_gone' };

/** What is kept of a key, as it was at one instant. The hours are not read. */
export interface KeyHistory {
  /** Id of the batch that was applied last; every batch with a lower one has been applied too. 0 when there was none. */
  readonly lastId: number;
  readonly sums: UsageSums;
}

/** Where usage is kept for good. Every method rejects with `StoreUnavailable` when the store does not answer. */
export interface UsageHistory {
  /**
   * Adds batches of different keys, all or none. Applying a batch again changes nothing, so that one whose outcome is unknown is
   * simply applied again, by anybody.
   */
  apply(batches: readonly UsageBatch[]): Promise<readonly ApplyOutcome[]>;
  read(keyId: string): Promise<KeyHistory>;
  /** The key's counts by hour since 1970, from `sinceHour` on, in order. */
  readHours(keyId: string, sinceHour: number): Promise<{ lastId: number; hours: Map<number, Counts> }>;
  erase(keyId: string): Promise<void>;
  /** Removes at most `limit` of the hours before `hour`, of any key. Resolves with how many. */
  prune(hour: number, limit: number): Promise<number>;
}
