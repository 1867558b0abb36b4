import { PathMatcher } from '../paths/path-matcher.ts';
import type { PathPattern } from '../paths/path-pattern.ts';
import type { PathCase } from '../paths/path-readings.ts';
import type { Limit } from './limit.ts';
import { type CostRule, type RequestCost, RequestCosts } from './request-costs.ts';

/** A limit and the requests that it is for. */
export interface LimitRule {
  readonly limit: Limit;
  /** The limit applies to requests that match any of these patterns; undefined = to every request. */
  readonly match: readonly PathPattern[] | undefined;
}

/**
 * The limits and costs of a key, compiled to be matched with requests. Requests to which the same limits apply get the same array, so that
 * callers can cache by it.
 */
export class RequestLimits {
  /** All limits, the plan's own first. */
  readonly all: readonly Limit[];
  /** The plan's own: its `limit` and `period`. */
  readonly main: Limit;
  /** Some limit is for each customer. */
  readonly hasCustomerLimits: boolean;
  /** Some limit or cost depends on the path. */
  readonly hasPatterns: boolean;
  readonly #matchers: readonly (PathMatcher<true> | undefined)[];
  readonly #isForAll: boolean;
  readonly #costs: RequestCosts;
  /** By the bits of the limits that apply. */
  readonly #lists = new Map<number, readonly Limit[]>();

  /** At most 30 limits, the plan's own first. Patterns must be well-formed. */
  constructor(rules: readonly [LimitRule, ...LimitRule[]], costs: readonly CostRule[], pathCase: PathCase) {
    this.main = rules[0].limit;
    this.all = rules.map(({ limit }) => limit);
    this.hasCustomerLimits = this.all.some(({ per }) => per === 'customer');
    this.#matchers = rules.map(
      ({ match }) =>
        match &&
        new PathMatcher(
          match.map((pattern) => ({ pattern, value: true as const })),
          pathCase,
        ),
    );
    this.#isForAll = this.#matchers.every((matcher) => matcher === undefined);
    this.#costs = new RequestCosts(costs, pathCase);
    this.hasPatterns = !this.#isForAll || costs.length > 0;
  }

  /**
   * The limits that apply to a request, in the plan's order. `path` as it was sent, without query; `others` are the other readings of it,
   * of which one is enough for a limit to apply.
   */
  limitsFor(method: string, path: string, others: readonly string[]): readonly Limit[] {
    if (this.#isForAll) return this.all;
    let bits = 0;
    for (let index = 0; index < this.#matchers.length; index += 1) {
      const matcher = this.#matchers[index];
      if (matcher === undefined || matcher.matchAny(method, path, others)) bits |= 1 << index;
    }
    return this.#lists.get(bits) ?? this.#keepList(bits);
  }

  /** Some request may have its cost reported by the backend. */
  get hasReportedCosts(): boolean {
    return this.#costs.hasReported;
  }

  costOf(method: string, path: string, others: readonly string[]): RequestCost {
    return this.#costs.costOf(method, path, others);
  }

  #keepList(bits: number): readonly Limit[] {
    const list = this.all.filter((_, index) => (bits >> index) & 1);
    this.#lists.set(bits, list);
    return list;
  }
}
