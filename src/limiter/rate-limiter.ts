// The room `limiter`: rate limits with periods, windows and costs, and the port that decides.
// In: a key's limits and the cost of a request (`LimitSubject`).
// Out: a `Decision`: allowed, limited or unavailable, with the state of each window. The circuit breaker for Redis and what is decided
// without it are in `guards/guarded-rate-limiter.ts`.

import type { DecidedWindow, Limit } from './request-limits.ts';

/** What a replica knows about a key and a request for a decision. */
export interface LimitSubject {
  readonly keyId: string;
  /** Version of the replica's copy of the key's record and plan, as `KeySnapshot.version` has it. */
  readonly version: string;
  /**
   * True if the copy was read from the record store for this request, after it arrived. The decision then uses it even if the shared
   * version differs, unless the key was deleted. Its version becomes the shared one if there is none, or an older one.
   */
  readonly fresh: boolean;
  /** The limits that apply to the request. Without any, the decision about a current copy is `unlimited`. */
  readonly limits: readonly Limit[];
  /** Units that the request costs in each limit, 0 … 999 999 999 999 999. With 0 it is always allowed and not counted. */
  readonly cost: number;
  /** What a request would cost of which it is only asked whether it would be allowed; `cost` is 0 then. Otherwise missing. */
  readonly askedCost?: number;
  /** The customer of the request, for limits per customer. At most 128 printable ASCII characters. */
  readonly customerId: string;
  /** Windows of the key may get room back before they end, so that a rejection must not be repeated. */
  readonly mayRelease: boolean;
}

/** The fields of a subject for a request to which no limit applies. */
export const WITHOUT_LIMITS: Pick<LimitSubject, 'limits' | 'cost' | 'customerId' | 'mayRelease'> = {
  limits: [],
  cost: 0,
  customerId: '',
  mayRelease: false,
};

/**
 * The decision about one request. A rejection is a value, not an exception.
 *
 * - `allowed`: every enforced window had room for the cost. Each window with room, enforced or not, was increased by it.
 * - `limited`: at least one enforced window had no room; nothing was counted anywhere.
 * - `unlimited`: no limit applies.
 * - `stale`: the copy is out of date; reload it and decide again.
 * - `unavailable`: no decision could be made; `cause` says why. It is a `NotCounted` if certainly nothing was counted.
 *
 * `nowMs` and the resets of the windows are instants of one clock (Redis TIME; for the in-process limiter the process's own), in
 * milliseconds since 1970. `degraded` is true if the shared limiter was unavailable and the failure mode decided: the numbers are then
 * those of the replica, and no rate-limit headers are sent.
 */
export type Decision = CountedDecision | UnlimitedDecision | StaleDecision | UnavailableDecision;

export interface CountedDecision {
  readonly kind: 'allowed' | 'limited';
  /** In the order of the subject's limits. At least one limit is enforced. */
  readonly windows: readonly DecidedWindow[];
  readonly nowMs: number;
  readonly degraded: boolean;
}

interface UnlimitedDecision {
  readonly kind: 'unlimited';
  readonly degraded: boolean;
}

interface StaleDecision {
  readonly kind: 'stale';
}

interface UnavailableDecision {
  readonly kind: 'unavailable';
  readonly cause: Error;
}

/**
 * Counts requests per key in windows, exactly, over all replicas.
 *
 * `decide` takes a callback because it is called for every proxied request: it calls `decided` exactly once
 * and never throws. A window opens with the first request that it counts and ends one period later.
 */
export interface RateLimiter {
  decide(subject: LimitSubject, decided: (decision: Decision) => void): void;
}
