import type { CountedDecision, LimitSubject } from './rate-limiter.ts';
import type { ThresholdWatch } from './threshold-watch.ts';
import type { CostDifference, WindowCounters } from './window-counters.ts';

/** Requests whose cost the backend was to report, by how that ended, counted from the start of the process. */
export interface SettlementCounts {
  /** The difference between cost and reserve was added to the windows, or subtracted from them. */
  readonly settled: number;
  /** The response had no cost: the reserve stands. */
  readonly missing: number;
  /** The response had no valid cost: the reserve stands. */
  readonly malformed: number;
  /** The store did not respond: the difference may or may not have been counted, and is not sent again. */
  readonly failed: number;
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
  readonly #counts: { -readonly [Result in keyof SettlementCounts]: number } = {
    settled: 0,
    missing: 0,
    malformed: 0,
    failed: 0,
  };
  readonly #pending = new Set<Promise<void>>();

  /** Without `thresholds`, none is watched. */
  constructor(counters: Pick<WindowCounters, 'settle'>, thresholds?: ThresholdWatch) {
    this.#counters = counters;
    this.#thresholds = thresholds;
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
      const pending = this.#settle(subject, decision, units - subject.cost);
      this.#pending.add(pending);
      void pending.then(() => this.#pending.delete(pending));
    }
  }

  /** Resolves when no settlement is in flight any more. Never rejects. */
  async stop(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #settle(subject: LimitSubject, decision: CountedDecision, units: number): Promise<void> {
    // A request with a reserve of 0 was not counted, and its windows may not be open.
    const windows = decision.windows.filter(({ isExceeded }) => !isExceeded && subject.cost > 0);
    try {
      if (units !== 0 && windows.length > 0) await this.#add({ ...subject, windows, units });
      this.#counts.settled += 1;
    } catch {
      this.#counts.failed += 1;
    }
  }

  async #add({ keyId, customerId, windows, units }: CostDifference): Promise<void> {
    const { used, nowMs } = await this.#counters.settle({ keyId, customerId, windows, units });
    if (this.#thresholds === undefined || units < 0) return;
    const settled = windows.flatMap((window, index) => {
      const count = used[index];
      return count === undefined ? [] : [{ ...window, used: count }];
    });
    this.#thresholds.note({ keyId, customerId, windows: settled, units, nowMs, mayRelease: true });
  }
}
