import { combineUsage } from './combine-usage.ts';
import type { LiveUsage } from './live-usage.ts';
import type { KeyUsage, UsageReader } from './usage.ts';
import type { UsageHistory } from './usage-history.ts';

/**
 * What the stores know of a key. The pending counts are read before the history, each at one instant: then what moved in between is in
 * the history, which says so, and a later reading never knows less.
 */
export class StoredUsage implements UsageReader {
  readonly #live: LiveUsage;
  readonly #history: UsageHistory;

  constructor(live: LiveUsage, history: UsageHistory) {
    this.#live = live;
    this.#history = history;
  }

  async read(keyId: string): Promise<KeyUsage> {
    const pending = await this.#live.read([keyId]);
    return combineUsage(pending, await this.#history.read(keyId));
  }
}
