import type { CountedDecision, LimitSubject } from './rate-limiter.ts';
import type { WindowCounters } from './window-counters.ts';

/** Outcomes of the costs that backends were to report, counted from the start of the process. */
export interface SettlementCounts {
  /** Added to, or given back from, the windows. */
  readonly settled: number;
  /** The response had no cost: the reserve stands. */
  readonly missing: number;
  /** The response had no valid cost: the reserve stands. */
  readonly malformed: number;
  /** The store did not respond: it is not known whether it was settled, and it is not tried again. */
  readonly failed: number;
}

const COST = /^\d{1,15}$/;

/**
 * Settles the costs of requests that only the backend knows: each was decided with a reserve, and the difference is added to the windows in
 * which it was counted, or given back from them, while they are the same windows. Each once, in the background.
 */
export class CostSettler {
  readonly #counters: WindowCounters;
  readonly #counts: { -readonly [Result in keyof SettlementCounts]: number } = {
    settled: 0,
    missing: 0,
    malformed: 0,
    failed: 0,
  };
  readonly #pending = new Set<Promise<void>>();

  constructor(counters: WindowCounters) {
    this.#counters = counters;
  }

  get counts(): SettlementCounts {
    return this.#counts;
  }

  /** To be called once for each allowed request whose cost is reported, when its response is over. `reported` is what the backend said. */
  settle(subject: LimitSubject, decision: CountedDecision, reported: string | undefined): void {
    if (reported === undefined) {
      this.#counts.missing += 1;
    } else if (!COST.test(reported)) {
      this.#counts.malformed += 1;
    } else {
      const pending = this.#settle(subject, decision, Number(reported) - subject.cost);
      this.#pending.add(pending);
      void pending.then(() => this.#pending.delete(pending));
    }
  }

  /** Resolves when all that was settled has reached the store, or failed to. */
  async stop(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #settle(
    { keyId, customerId, cost }: LimitSubject,
    decision: CountedDecision,
    units: number,
  ): Promise<void> {
    // With a reserve of 0 the request was counted nowhere, and what it met may not be open.
    const windows = decision.windows.filter(({ isExceeded }) => !isExceeded && cost > 0);
    try {
      if (units !== 0 && windows.length > 0)
        await this.#counters.settle({ keyId, customerId, windows, units });
      this.#counts.settled += 1;
    } catch {
      this.#counts.failed += 1;
    }
  }
}
