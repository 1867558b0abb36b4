import { OTHER_CUSTOMERS } from './customer-windows.ts';
import type { Period } from './period.ts';
import type { DecidedWindow } from './request-limits.ts';
import type { PassedThreshold, WindowCounters } from './window-counters.ts';

/** Units that were counted in windows. */
export interface CountedUnits {
  readonly keyId: string;
  readonly customerId: string;
  /** As they are after it. */
  readonly windows: readonly DecidedWindow[];
  readonly units: number;
  /** By the store's clock. Milliseconds since 1970. */
  readonly nowMs: number;
  /** Units may be subtracted from the windows when costs are settled. */
  readonly mayRelease: boolean;
}

/** What `ThresholdWatch` is built from. */
export interface ThresholdWatchOptions {
  /** In percent, ascending, at least one. */
  readonly thresholds: readonly number[];
  readonly counters: Pick<WindowCounters, 'passOnce'>;
  readonly onPassed: (passed: PassedThreshold) => void;
  /** Called when the store can't say whether a window has passed the threshold before. */
  readonly onLost: () => void;
}

/** Shorter windows pass their thresholds all the time. */
const SHORTEST_PERIOD_MS = 60_000;
/** Calls to the store at a time; what is beyond is lost. */
const MOST_CALLS = 1000;

/**
 * Notices that a window passes a threshold. Counts are exact and each change of a count has its own result, so exactly one call, over all
 * replicas, sees the count on both sides of a threshold. Where settled costs subtract units, a count may pass it several times: the store
 * knows the first one.
 */
export class ThresholdWatch {
  readonly #options: ThresholdWatchOptions;
  readonly #calls = new Set<Promise<void>>();

  constructor(options: ThresholdWatchOptions) {
    this.#options = options;
  }

  /** Whether the units made a window pass a threshold. It is called for every allowed request, and allocates nothing. */
  isPassed(windows: readonly DecidedWindow[], units: number): boolean {
    const { thresholds } = this.#options;
    for (let index = 0; index < windows.length; index += 1) {
      const window = windows[index];
      if (window === undefined || window.isExceeded) continue;
      for (let each = 0; each < thresholds.length; each += 1) {
        const at = unitsAt(thresholds[each] ?? 0, window.quota);
        if (window.used < at) break;
        if (window.used - units < at) return true;
      }
    }
    return false;
  }

  /** Reports each threshold that the units made a window pass. */
  note({ keyId, customerId, windows, units, nowMs, mayRelease }: CountedUnits): void {
    for (const { limit, quota, used, resetAtMs, isExceeded, isShared } of windows) {
      if (isExceeded || isShort(limit.period)) continue;
      for (const threshold of this.#options.thresholds) {
        const at = unitsAt(threshold, quota);
        if (used < at || used - units >= at) continue;
        const customer = isShared ? OTHER_CUSTOMERS : customerId;
        const ofCustomer = limit.per === 'customer' ? customer : undefined;
        const window = { keyId, limit, customerId: ofCustomer, quota, used, resetAtMs };
        this.#pass({ ...window, threshold, atMs: nowMs }, mayRelease);
      }
    }
  }

  /** Resolves when no call to the store is in flight any more. Never rejects. */
  async stop(): Promise<void> {
    while (this.#calls.size > 0) await Promise.all(this.#calls);
  }

  #pass(passed: PassedThreshold, mayRelease: boolean): void {
    const { onPassed, onLost } = this.#options;
    if (!mayRelease) {
      onPassed(passed);
    } else if (this.#calls.size >= MOST_CALLS) {
      onLost();
    } else {
      const call = this.#passOnce(passed);
      this.#calls.add(call);
      void call.then(() => this.#calls.delete(call));
    }
  }

  async #passOnce(passed: PassedThreshold): Promise<void> {
    const { counters, onPassed, onLost } = this.#options;
    const isFirst = await counters.passOnce(passed).catch(() => undefined);
    if (isFirst === undefined) onLost();
    else if (isFirst) onPassed(passed);
  }
}

/** The least count that has passed the threshold, 1 … quota. */
function unitsAt(threshold: number, quota: number): number {
  // The product of the largest limits is not exact.
  return Math.min(quota, Math.ceil((quota * threshold) / 100));
}

function isShort(period: Period): boolean {
  return period.kind === 'fixed' && period.lengthMs < SHORTEST_PERIOD_MS;
}
