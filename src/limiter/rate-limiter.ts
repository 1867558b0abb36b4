import type { DecidedWindow } from './decided-window.ts';
import type { Limit } from './limit.ts';

/** What a replica knows about a key and a request for a decision. */
export interface LimitSubject {
  readonly keyId: string;
  /** Version of the replica's copy of the key's record and plan, as `KeySnapshot.version` has it. */
  readonly version: string;
  /**
   * True when the copy was read from the record store for this very request, after the request arrived:
   * then it needs no comparison, and is installed as the shared version where none is known.
   */
  readonly fresh: boolean;
  /** The limits that apply to the request; with none it is allowed (after the version check). */
  readonly limits: readonly Limit[];
  /** What the request costs in each of them, 0 … 999 999 999 999 999. At 0 it is counted nowhere and always allowed. */
  readonly cost: number;
  /** Whose window it is counted in where a limit is for each customer. At most 128 printable characters of ASCII. */
  readonly customerId: string;
  /** Windows of the key may get room back before they end, so that a rejection must not be repeated. */
  readonly mayRelease: boolean;
}

/** What a subject says of a request to which no limit applies. */
export const WITHOUT_LIMITS: Pick<LimitSubject, 'limits' | 'cost' | 'customerId' | 'mayRelease'> = {
  limits: [],
  cost: 0,
  customerId: '',
  mayRelease: false,
};

/**
 * The decision about one request. A rejection is a value, not an exception.
 *
 * - `allowed`: every enforced window had room for the cost, and each that had room was increased by it.
 * - `limited`: at least one enforced window had none; nothing was counted anywhere.
 *
 * `windows` are in the order of the subject's limits. `nowMs` and their resets are instants of one clock (Redis TIME; the process's own
 * for the in-process limiter), in milliseconds since 1970. `degraded` is true when the shared limiter was unavailable and a
 * replica's own share decided: then the numbers are the replica's, and no rate-limit headers are sent.
 * - `unlimited`: no limit applies. - `stale`: the copy is out of date; reload it and decide again.
 * - `unavailable`: no decision could be made; `cause` says why, `NotCounted` where it is certain that nothing was counted.
 */
export type Decision = CountedDecision | UnlimitedDecision | StaleDecision | UnavailableDecision;

export interface CountedDecision {
  readonly kind: 'allowed' | 'limited';
  /** At least one of a limit that is enforced. */
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
