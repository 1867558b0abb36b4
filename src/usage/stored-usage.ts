import { combineTotals, combineUsage } from './combine-usage.ts';
import type { LiveUsage } from './live-usage.ts';
import { shardOf } from './shards.ts';
import type { KeyTotals, KeyUsage, UsageReader } from './usage-counts.ts';
import type { KeptTotals, UsageHistory } from './usage-history.ts';
import { noCounts } from './usage-slice.ts';

const NO_IDS: ReadonlyMap<string, number> = new Map();
const NOTHING_KEPT: KeptTotals = { totals: noCounts(), lastUsedAtMs: null };

/**
 * Reads usage from the stores: the pending counts first, then the history, each at one instant. Counts that are moved in between are in
 * both, but the last ids in the history show that. So a later read never returns less than an earlier one.
 */
export class StoredUsage implements UsageReader {
  readonly #live: Pick<LiveUsage, 'read'>;
  readonly #history: UsageHistory;

  constructor(live: Pick<LiveUsage, 'read'>, history: UsageHistory) {
    this.#live = live;
    this.#history = history;
  }

  async read(keyId: string): Promise<KeyUsage> {
    const pending = await this.#live.read([keyId]);
    return combineUsage(pending, await this.#history.read(keyId));
  }

  async totals(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyTotals>> {
    if (keyIds.length === 0) return new Map();
    const pending = Map.groupBy(await this.#live.read(keyIds), ({ shard }) => shard);
    const history = await this.#history.readTotals(keyIds);
    return new Map(
      keyIds.map((keyId) => {
        const shard = shardOf(keyId);
        const kept = history.keys.get(keyId) ?? NOTHING_KEPT;
        const lastIds = history.lastIds.get(shard) ?? NO_IDS;
        return [keyId, combineTotals(keyId, pending.get(shard) ?? [], { ...kept, lastIds })];
      }),
    );
  }
}
