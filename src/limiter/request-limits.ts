import { PathMatcher } from '../paths/path-matcher.ts';
import type { PathPattern } from '../paths/path-pattern.ts';
import type { PathCase } from '../paths/path-readings.ts';
import type { Period } from './period.ts';

/** The id of the limit that every plan has: its `limit` and `period`. */
export const MAIN_LIMIT_ID = 'main';

/** `enforce` rejects a request that finds no room; `shadow` only counts that it would have. */
export const LIMIT_MODES = ['enforce', 'shadow'] as const;
export type LimitMode = (typeof LIMIT_MODES)[number];

/** Whose requests share a window: all of a key, or those of one customer of a key. */
export const LIMIT_SCOPES = ['key', 'customer'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** How much the requests of a key may cost together in one window. Immutable: an edit of the plan or the key makes a new one. */
export interface Limit {
  /** Unique in its plan; `main` for the plan's own. */
  readonly id: string;
  /** 1 … 999 999 999 999 999. Holds until `endsAtMs`, where there is one. */
  readonly limit: number;
  /** The plan's limit without the key's override. */
  readonly baseLimit: number;
  /** When the key's override ends and `baseLimit` holds again, by the store's clock; null = never. Milliseconds since 1970. */
  readonly endsAtMs: number | null;
  readonly period: Period;
  /** The period as the plan's author wrote it. */
  readonly periodText: string;
  readonly per: LimitScope;
  readonly mode: LimitMode;
  /** Names its window among those of the key: `<id>:<period token>`. */
  readonly windowName: string;
}

/** The limit at an instant of the store's clock. */
export function limitAt({ limit, baseLimit, endsAtMs }: Limit, nowMs: number): number {
  return endsAtMs === null || nowMs < endsAtMs ? limit : baseLimit;
}

/** The customer of a request that names none. */
export const ANONYMOUS_CUSTOMER = 'anonymous';

/** The id of a customer: 1 to 128 printable ASCII characters. */
export const CUSTOMER_ID = /^[\x20-\x7e]{1,128}$/;

/** The customer whose request it is, from the value of the customer header: `anonymous` where the value is no id. */
export function customerOf(value: string | string[] | undefined): string {
  return typeof value === 'string' && CUSTOMER_ID.test(value) ? value : ANONYMOUS_CUSTOMER;
}

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

/** The cost of a request that no rule matches, or whose key has no plan. */
export const USUAL_COST: RequestCost = { units: 1, isReported: false };

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
    let cost = this.#matcher?.match(method, path) ?? USUAL_COST;
    for (const other of others) cost = higherOf(cost, this.#matcher?.match(method, other) ?? USUAL_COST);
    return cost;
  }
}

/** If the backend may report one of them, it is reported: until then, or if it is not, the higher units stand. */
function higherOf(one: RequestCost, other: RequestCost): RequestCost {
  if (one === other) return one;
  return { units: Math.max(one.units, other.units), isReported: one.isReported || other.isReported };
}

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

/** A window that applied to a request, as it is after the decision. */
export interface DecidedWindow {
  readonly limit: Limit;
  /** The limit at the instant of the decision; in a degraded decision the replica's share. */
  readonly quota: number;
  /** Units counted in the window. Below 0 after a grant, above `quota` after the limit was lowered or a cost was settled. */
  readonly used: number;
  /** When the window ends; for a window that is not open, when it would end if it opened now. Milliseconds since 1970. */
  readonly resetAtMs: number;
  /** There was no room for the request: an enforced limit rejected it, a shadow limit would have. */
  readonly isExceeded: boolean;
  /** The window is the one that all customers beyond `MAX_CUSTOMER_WINDOWS` share. */
  readonly isShared: boolean;
}

/** What is left in a window, never negative. */
export function remainingIn({ quota, used }: DecidedWindow): number {
  return Math.max(0, quota - used);
}

/** The window that ends last of those that reject the request; undefined if none rejects it. */
export function rejectingWindow(windows: readonly DecidedWindow[]): DecidedWindow | undefined {
  let found: DecidedWindow | undefined;
  for (const window of windows) {
    if (!window.isExceeded || window.limit.mode !== 'enforce') continue;
    if (found === undefined || window.resetAtMs > found.resetAtMs) found = window;
  }
  return found;
}

/** The enforced window with the least remaining, of several the one that ends last; undefined if none is enforced. */
export function tightestWindow(windows: readonly DecidedWindow[]): DecidedWindow | undefined {
  let found: DecidedWindow | undefined;
  for (const window of windows) {
    if (window.limit.mode === 'enforce' && (found === undefined || isTighter(window, found))) found = window;
  }
  return found;
}

function isTighter(window: DecidedWindow, than: DecidedWindow): boolean {
  const difference = remainingIn(window) - remainingIn(than);
  return difference < 0 || (difference === 0 && window.resetAtMs > than.resetAtMs);
}

/** The ids of the shadow limits that would have rejected a request which was allowed. */
export function shadowRejectionsOf(windows: readonly DecidedWindow[]): readonly string[] {
  const first = windows[0];
  // Most plans have one limit, which is enforced.
  if (windows.length === 1 && first?.limit.mode === 'enforce') return NONE;
  return windows
    .filter(({ isExceeded, limit }) => isExceeded && limit.mode === 'shadow')
    .map(({ limit }) => limit.id);
}

const NONE: readonly string[] = [];
