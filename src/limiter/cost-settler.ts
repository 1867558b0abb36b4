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
   * The store may lack the difference, which is not sent again: only the replica counts it. The store did not respond, may have counted
   * the request without a response, or has a reserve that is not given back any more.
   */
  readonly failed: number;
}

/**
 * Settles a cost without the store, which was unavailable when the request was decided, or is now. `isCertain`: the store certainly has not
 * counted the difference; undefined if the request was decided without it. Returns whether the store gets the difference afterwards, or its
 * windows have ended.
 */
export type SettleAlone = (
  decision: CountedDecision,
  difference: CostDifference,
  isCertain?: boolean,
) => boolean;

/** What some gateways have. */
interface SettlerOptions {
  /** Undefined: no threshold is watched. */
  readonly thresholds?: ThresholdWatch | undefined;
  /** Undefined: the counters are in this process. */
  readonly settleAlone?: SettleAlone | undefined;
}

const COST = /^\d{1,15}$/;

/** The units in the value of `Tollgate-Cost`; undefined if there is none, or no valid one. */
export function reportedUnits(reported: string | undefined): number | undefined {
  return reported !== undefined && COST.test(reported) ? Number(reported) : undefined;
}

/**
 * Settles costs that only the backend knows. Such a request was decided with a reserve; the difference is added to the windows in which the
 * request was counted, or subtracted from them, if they are still open. Each request is settled once, in the background.
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
      const pending = this.#settle(decision, differenceOf(subject, decision, units));
      this.#pending.add(pending);
      void pending.then(() => this.#pending.delete(pending));
    }
  }

  /** Resolves when no settlement is in flight any more. Never rejects. */
  async stop(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #settle(decision: CountedDecision, difference: CostDifference): Promise<void> {
    const isNothing = difference.units === 0 || difference.windows.length === 0;
    const isSettled = isNothing || (await this.#add(decision, difference));
    this.#counts[isSettled ? 'settled' : 'failed'] += 1;
  }

  async #add(decision: CountedDecision, difference: CostDifference): Promise<boolean> {
    if (decision.degraded) return this.#settleAlone?.(decision, difference) ?? false;
    try {
      this.#watch(difference, await this.#counters.settle(difference));
      return true;
    } catch (error) {
      return this.#settleAlone?.(decision, difference, error instanceof NotCounted) ?? false;
    }
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
  { windows }: CountedDecision,
  units: number,
): CostDifference {
  const counted = windows.filter(({ isExceeded }) => !isExceeded && cost > 0);
  return { keyId, customerId, windows: counted, units: units - cost };
}
