import type { Period } from './period.ts';

/** What a replica knows of a key when it asks for a decision. */
export interface LimitSubject {
  readonly keyId: string;
  /** Version of the replica's copy of the key's record and plan, as `KeyGrant.version` has it. */
  readonly version: string;
  /**
   * True when the copy was read from the record store for this very request, after the request arrived:
   * then it needs no comparison, and is installed as the shared version where none is known.
   */
  readonly fresh: boolean;
  /** The limit to enforce; null admits everything (after the version check). */
  readonly quota: Quota | null;
}

/** Requests allowed in one window, and how long a window is. */
export interface Quota {
  /** 1 … 999 999 999 999 999 requests. */
  readonly limit: number;
  readonly period: Period;
}

/**
 * The answer to one request. A denial is a value, not an exception.
 *
 * - `admitted`, `denied`: `resetAtMs` and `nowMs` are instants of one clock (Redis TIME; the process's own
 *   for the in-process limiter), in milliseconds since 1970. `degraded` is true when the shared count could
 *   not be asked and a replica's own share decided: then the numbers are the replica's, and no rate-limit
 *   headers are sent.
 * - `unlimited`: admitted, no plan applies.
 * - `stale`: the copy is out of date; reload it and ask again with `fresh`.
 * - `unavailable`: the store did not answer, nothing was decided.
 */
export type Decision =
  | {
      readonly kind: 'admitted';
      readonly remaining: number;
      readonly resetAtMs: number;
      readonly nowMs: number;
      readonly degraded: boolean;
    }
  | {
      readonly kind: 'denied';
      readonly resetAtMs: number;
      readonly nowMs: number;
      readonly degraded: boolean;
    }
  | { readonly kind: 'unlimited'; readonly degraded: boolean }
  | { readonly kind: 'stale' }
  | { readonly kind: 'unavailable'; readonly cause: Error };

/** The state of a key's window, for the detail answer. */
export interface WindowState {
  /** Requests counted in the open window; 0 when none is open. */
  readonly used: number;
  /** When the open window ends, or null when none is open. Milliseconds since 1970, by the store's clock. */
  readonly resetAtMs: number | null;
  /** The store's time of the answer. Milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * Counts requests per key in windows, exactly, over all replicas.
 *
 * `decide` takes a callback because it is called for every proxied request: it calls `decided` exactly once
 * and never throws. A window opens with the first request of a key and ends one period later; a request over
 * the limit is not counted.
 */
export interface RateLimiter {
  decide(subject: LimitSubject, decided: (decision: Decision) => void): void;
  /** Reads the window that `quota` would use, without counting. Rejects with `StoreUnavailable`. */
  peek(keyId: string, quota: Quota): Promise<WindowState>;
}
