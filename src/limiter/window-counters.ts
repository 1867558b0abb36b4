import type { DecidedWindow } from './decided-window.ts';
import type { Limit } from './limit.ts';

/** Whose counters are meant. */
export interface CounterSubject {
  readonly keyId: string;
  readonly limits: readonly Limit[];
  /** Whose windows of the limits for each customer. */
  readonly customerId: string;
}

/** What a window holds. */
export interface WindowCounter {
  readonly limit: Limit;
  /** Units counted in the open window; 0 when none is open. */
  readonly used: number;
  /** Room given in it beyond the limit. */
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

/** Whose windows are closed; `customerId` null = those of all customers. */
export interface ResetWindows extends Omit<CounterSubject, 'customerId'> {
  readonly customerId: string | null;
}

/** Room to give: units beyond the limit, at least 1. */
export interface GrantedUnits extends CounterSubject {
  readonly units: number;
  /** Names the grant: given again within a day, it adds nothing to the windows that it has added to. Undefined: each is another one. */
  readonly operationId?: string | undefined;
}

/** What a request did cost besides what it was decided with. */
export interface CostDifference extends Omit<CounterSubject, 'limits'> {
  /** In which it was counted, as they were then. */
  readonly windows: readonly DecidedWindow[];
  /** Below 0: given back. */
  readonly units: number;
}

/** Reads and changes live counters. A change holds with the next request on every replica. All reject with `StoreUnavailable`. */
export interface WindowCounters {
  /** Without counting anything. */
  read(subject: CounterSubject): Promise<WindowCounts>;
  /** The same of many keys, each subject of another one, in a few calls of the store. In the order of the subjects. */
  readAll(subjects: readonly CounterSubject[]): Promise<readonly WindowCounts[]>;
  /** Closes the windows of the limits; of limits for each customer those of `customerId`, or of all customers where it is null. */
  reset(subject: ResetWindows): Promise<void>;
  /** Gives more room in the present window of each limit, and opens one where none is open. It ends with the window. */
  grant(granted: GrantedUnits): Promise<void>;
  /** Adds the difference to each of the windows that is still the same. */
  settle(difference: CostDifference): Promise<void>;
}
