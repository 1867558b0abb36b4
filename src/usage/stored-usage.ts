import { combineUsage, notYetIn, outcomes } from './combine-usage.ts';
import type { LiveUsage } from './live-usage.ts';
import type { HourUsage, KeyUsage, UsageEraser, UsageReader, UsageTimeline } from './usage.ts';
import type { UsageHistory } from './usage-history.ts';
import { addUnder } from './usage-sums.ts';

const HOUR_MS = 3_600_000;

/**
 * What the stores know of a key. The live counts are read before the history, each at one instant: then what moved in between is in the
 * history, which says so, and a later reading never knows less.
 */
export class StoredUsage implements UsageReader, UsageTimeline, UsageEraser {
  readonly #live: LiveUsage;
  readonly #history: UsageHistory;

  constructor(live: LiveUsage, history: UsageHistory) {
    this.#live = live;
    this.#history = history;
  }

  async read(keyId: string): Promise<KeyUsage> {
    const live = await this.#live.read(keyId);
    return combineUsage(live, await this.#history.read(keyId));
  }

  async readHours(keyId: string, sinceMs: number): Promise<readonly HourUsage[]> {
    const since = Math.floor(sinceMs / HOUR_MS);
    const live = await this.#live.read(keyId);
    const { lastId, hours } = await this.#history.readHours(keyId, since);
    for (const { sums } of notYetIn(live, lastId)) {
      for (const [hour, counts] of sums.hours) if (hour >= since) addUnder(hours, hour, counts);
    }
    return [...hours]
      .toSorted(([a], [b]) => a - b)
      .map(([hour, counts]) => ({ startsAtMs: hour * HOUR_MS, ...outcomes(counts) }));
  }

  async erase(keyId: string): Promise<void> {
    await this.#live.erase(keyId);
    await this.#history.erase(keyId);
  }
}
