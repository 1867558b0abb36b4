import type { DecidedWindow, Limit } from './request-limits.ts';

/** The windows of some limits of a key, for one customer. */
export interface CounterSubject {
  readonly keyId: string;
  readonly limits: readonly Limit[];
  /** The customer, for limits per customer. */
  readonly customerId: string;
}

/** What a window holds. */
export interface WindowCounter {
  readonly limit: Limit;
  /** Units counted in the open window; 0 when none is open. */
  readonly used: number;
  /** Units granted in the open window beyond the limit. */
  readonly granted: number;
  /** When the open window ends; null when none is open. Milliseconds since 1970, by the store's clock. */
  readonly resetAtMs: number | null;
}

/** The counters of a subject, in the order of its limits. */
export interface WindowCounts {
  readonly counters: readonly WindowCounter[];
  /** The store's time. Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The windows to close; `customerId` null = those of all customers. */
export interface ResetWindows extends Omit<CounterSubject, 'customerId'> {
  readonly customerId: string | null;
}

/** How long a grant is remembered: as long as the response to a request with an idempotency key is kept. Milliseconds. */
export const GRANT_REMEMBERED_MS = 86_400_000;

/** A grant of `units` beyond the limit, at least 1. */
export interface GrantedUnits extends CounterSubject {
  readonly units: number;
  /** Identifies the grant: repeated within `GRANT_REMEMBERED_MS`, it adds nothing to windows that have it. Undefined: each call is a new grant. */
  readonly operationId?: string | undefined;
}

/** The difference between the cost of a request and its reserve. */
export interface CostDifference extends Omit<CounterSubject, 'limits'> {
  /** By the store's clock. Milliseconds since 1970. */
  readonly decidedAtMs: number;
  /** The windows that counted the request, as they were at its decision. */
  readonly windows: readonly DecidedWindow[];
  /** Below 0: the request cost less than its reserve. */
  readonly units: number;
}

/** Windows after a difference was added to them. */
export interface SettledWindows {
  /** Units counted in each window, in the order of the windows; undefined for one that is not open any more. */
  readonly used: readonly (number | undefined)[];
  /** The store's time. Milliseconds since 1970. */
  readonly nowMs: number;
}

/** A window whose count has passed a part of its limit. */
export interface PassedThreshold {
  readonly keyId: string;
  readonly limit: Limit;
  /** Of a limit per customer, `__other__` for the window that those beyond the bound share; undefined for a limit of the key. */
  readonly customerId: string | undefined;
  /** Percent of the limit. */
  readonly threshold: number;
  /** The limit at that instant. */
  readonly quota: number;
  /** Units counted in the window. */
  readonly used: number;
  /** When the window ends, by the store's clock. Milliseconds since 1970. */
  readonly resetAtMs: number;
  /** By the store's clock. Milliseconds since 1970. */
  readonly atMs: number;
}

/**
 * Reads and changes live counters. A change takes effect on every replica with the next request. All methods reject with
 * `StoreUnavailable`.
 */
export interface WindowCounters {
  /** Without counting anything. */
  read(subject: CounterSubject): Promise<WindowCounts>;
  /** Reads the counters of many keys with few calls to the store. Each subject has another key. In the order of the subjects. */
  readAll(subjects: readonly CounterSubject[]): Promise<readonly WindowCounts[]>;
  /** Closes the open windows of the limits; for limits per customer those of `customerId`, or of all customers if it is null. */
  reset(subject: ResetWindows): Promise<void>;
  /** Grants units in the open window of each limit, and opens one if none is open. The grant ends with the window. */
  grant(granted: GrantedUnits): Promise<void>;
  /** Adds the difference to each of the windows that is still open. Rejects with `NotCounted` if this call certainly added nothing. */
  settle(difference: CostDifference): Promise<SettledWindows>;
  /**
   * Whether the window has not passed the threshold before, since it was opened, its limit was changed or units were granted in it.
   * True once, over all replicas.
   */
  passOnce(passed: PassedThreshold): Promise<boolean>;
}
