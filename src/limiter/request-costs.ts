import { PathMatcher } from '../paths/path-matcher.ts';
import type { PathPattern } from '../paths/path-pattern.ts';

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

  constructor(rules: readonly CostRule[]) {
    this.hasReported = rules.some(({ cost }) => cost.isReported);
    this.#matcher =
      rules.length === 0
        ? undefined
        : new PathMatcher(rules.map(({ pattern, cost }) => ({ pattern, value: cost })));
  }

  costOf(method: string, path: string): RequestCost {
    return this.#matcher?.match(method, path) ?? ONE;
  }
}
