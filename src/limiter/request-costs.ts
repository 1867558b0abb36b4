import { PathMatcher } from '../paths/path-matcher.ts';
import type { PathPattern } from '../paths/path-pattern.ts';
import type { PathCase } from '../paths/path-readings.ts';

/** What a request costs in each window that it is counted in. */
export interface RequestCost {
  /** Units that there must be room for; 0 = counted nowhere. */
  readonly units: number;
  /** The backend's response has the actual cost; `units` are reserved until then. */
  readonly isReported: boolean;
}

/** What requests cost. The first rule that matches counts. */
export interface CostRule {
  readonly pattern: PathPattern;
  readonly cost: RequestCost;
}

/** The cost of a request that no rule matches. */
const ONE: RequestCost = { units: 1, isReported: false };

/** The costs of a key's requests, compiled to be matched with requests. */
export class RequestCosts {
  /** Some request may have its cost reported by the backend. */
  readonly hasReported: boolean;
  readonly #matcher: PathMatcher<RequestCost> | undefined;

  constructor(rules: readonly CostRule[], pathCase: PathCase) {
    this.hasReported = rules.some(({ cost }) => cost.isReported);
    this.#matcher =
      rules.length === 0
        ? undefined
        : new PathMatcher(
            rules.map(({ pattern, cost }) => ({ pattern, value: cost })),
            pathCase,
          );
  }

  /** The highest of what the rules say for the path and the other readings of it. */
  costOf(method: string, path: string, others: readonly string[]): RequestCost {
    let cost = this.#matcher?.match(method, path) ?? ONE;
    for (const other of others) cost = higherOf(cost, this.#matcher?.match(method, other) ?? ONE);
    return cost;
  }
}

/** If the backend may report one of them, it is reported: until then, or if it is not, the higher units stand. */
function higherOf(one: RequestCost, other: RequestCost): RequestCost {
  if (one === other) return one;
  return { units: Math.max(one.units, other.units), isReported: one.isReported || other.isReported };
}
