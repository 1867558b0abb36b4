import { NotCounted } from './not-counted.ts';
import type { CountedDecision, LimitSubject } from './rate-limiter.ts';
import type { ThresholdWatch } from './threshold-watch.ts';
import type { CostDifference, SettledWindows, WindowCounters } from './window-counters.ts';

/** Requests whose cost the backend was to report, by how that ended, counted from the start of the process. */
export interface SettlementCounts {
  /** The difference between cost and reserve was added to the windows, or subtracted from them. */
  readonly settled: number;
  /** The response had no cost: the reserve stands. */
  readonly missing: number;
  /** The response had no valid cost: the reserve stands. */
  readonly malformed: number;
  /**
   * Only the replica counts the difference. The store did not respond, and may or may not have counted it: it is not sent again. Or the
   * store did not decide the request, and does not get the difference.
   */
  readonly failed: number;
}

/**
 * Counts the difference in the replica's share, because the store is unavailable. Returns, for a request that was allowed without the store,
 * whether the difference is counted with the request, or its windows have ended.
 */
export type SettleAlone = (decision: CountedDecision, difference: CostDifference) => boolean;

/** What some gateways have. */
interface SettlerOptions {
  /** Undefined: no threshold is watched. */
  readonly thresholds?: ThresholdWatch | undefined;
  /** Undefined: the counters are in this process. */
  readonly settleAlone?: SettleAlone | undefined;
}

/** Most differences that wait for the store. Further ones are `failed`. */
const MOST_WAITING = 10_000;
/** Differences that are sent together. */
const CHUNK_SIZE = 200;
/** Pause before what waits is sent. Milliseconds. */
const RETRY_MS = 500;

const COST = /^\d{1,15}$/;

/** The units in the value of `Tollgate-Cost`; undefined if there is none, or no valid one. */
export function reportedUnits(reported: string | undefined): number | undefined {
  return reported !== undefined && COST.test(reported) ? Number(reported) : undefined;
}

/**
 * Settles costs that only the backend knows. Such a request was decided with a reserve; the difference is added to the windows in which the
 * request was counted, or subtracted from them, if they are still open. Each request is settled once, in the background. A difference that
 * the store certainly did not count, because it could not be reached, waits for it.
 */
export class CostSettler {
  readonly #counters: Pick<WindowCounters, 'settle'>;
  readonly #thresholds: ThresholdWatch | undefined;
  readonly #settleAlone: SettleAlone | undefined;
  readonly #counts: { -readonly [Result in keyof SettlementCounts]: number } = {
    settled: 0,
    missing: 0,
    malformed: 0,
    failed: 0,
  };
  readonly #pending = new Set<Promise<void>>();
  readonly #waiting: CostDifference[] = [];
  #retry: NodeJS.Timeout | undefined;

  constructor(counters: Pick<WindowCounters, 'settle'>, { thresholds, settleAlone }: SettlerOptions = {}) {
    this.#counters = counters;
    this.#thresholds = thresholds;
    this.#settleAlone = settleAlone;
  }

  get counts(): SettlementCounts {
    return this.#counts;
  }

  /**
   * Call it once for each allowed request whose cost the backend reports, when its response has ended. `reported` is the value of
   * `Tollgate-Cost`, undefined if the backend sent none.
   */
  settle(subject: LimitSubject, decision: CountedDecision, reported: string | undefined): void {
    const units = reportedUnits(reported);
    if (reported === undefined) {
      this.#counts.missing += 1;
    } else if (units === undefined) {
      this.#counts.malformed += 1;
    } else {
      this.#await(this.#settle(decision, differenceOf(subject, decision, units)));
    }
  }

  /** Sends what waits, and resolves when no settlement is in flight any more. What still waits then is `failed`. Never rejects. */
  async stop(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
    clearTimeout(this.#retry);
    await this.#sendWaiting();
    clearTimeout(this.#retry);
    this.#counts.failed += this.#waiting.splice(0).length;
  }

  #await(pending: Promise<void>): void {
    this.#pending.add(pending);
    void pending.then(() => this.#pending.delete(pending));
  }

  async #settle(decision: CountedDecision, difference: CostDifference): Promise<void> {
    const isNothing = difference.units === 0 || difference.windows.length === 0;
    if (isNothing || decision.degraded) {
      const isSettled = isNothing || this.#settleAlone?.(decision, difference) === true;
      this.#counts[isSettled ? 'settled' : 'failed'] += 1;
      return;
    }
    const result = await this.#send(difference);
    if (result !== 'settled') this.#settleAlone?.(decision, difference);
    if (result !== 'not counted') {
      this.#counts[result] += 1;
    } else if (this.#waiting.length < MOST_WAITING) {
      this.#waiting.push(difference);
      this.#sendLater();
    } else {
      this.#counts.failed += 1;
    }
  }

  async #send(difference: CostDifference): Promise<'settled' | 'failed' | 'not counted'> {
    try {
      this.#watch(difference, await this.#counters.settle(difference));
      return 'settled';
    } catch (error) {
      return error instanceof NotCounted ? 'not counted' : 'failed';
    }
  }

  #sendLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#await(this.#sendWaiting());
    }, RETRY_MS).unref();
  }

  /** Ends early when the store counts none of a chunk: it may lose what it gets. The next time begins with the others. */
  async #sendWaiting(): Promise<void> {
    const waiting = this.#waiting.splice(0);
    let isThere = true;
    while (isThere && waiting.length > 0) {
      const chunk = waiting.splice(0, CHUNK_SIZE);
      const results = await Promise.all(chunk.map((difference) => this.#send(difference)));
      const left = chunk.filter((_, index) => results[index] === 'not counted');
      for (const result of results) if (result !== 'not counted') this.#counts[result] += 1;
      this.#waiting.push(...left);
      isThere = results.includes('settled');
    }
    this.#waiting.unshift(...waiting);
    if (this.#waiting.length > 0) this.#sendLater();
  }

  #watch({ keyId, customerId, windows, units }: CostDifference, { used, nowMs }: SettledWindows): void {
    if (this.#thresholds === undefined || units < 0) return;
    const settled = windows.flatMap((window, index) => {
      const count = used[index];
      return count === undefined ? [] : [{ ...window, used: count }];
    });
    this.#thresholds.note({ keyId, customerId, windows: settled, units, nowMs, mayRelease: true });
  }
}

/** The difference between a cost and the reserve. A request with a reserve of 0 was not counted, and its windows may not be open. */
function differenceOf(
  { keyId, customerId, cost }: LimitSubject,
  { windows, nowMs }: CountedDecision,
  units: number,
): CostDifference {
  const counted = windows.filter(({ isExceeded }) => !isExceeded && cost > 0);
  return { keyId, customerId, decidedAtMs: nowMs, windows: counted, units: units - cost };
}
