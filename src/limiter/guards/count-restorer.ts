import type { Limit } from '../limit.ts';

/** Units of one window that a replica allowed by itself while the shared limiter was unavailable. */
export interface UncountedUnits {
  readonly keyId: string;
  readonly limit: Limit;
  /** The customer whose window it is, for a limit per customer. */
  readonly customerId: string;
  /** At least 1. */
  readonly units: number;
}

/** Gives units back to the shared count after an outage, so that a window holds what was really allowed. */
export interface CountRestorer {
  /**
   * Adds the units to the open window, or opens one; does nothing for a deleted key. Calls with the same operation id within ten minutes
   * add them once. Rejects with `NotCounted` if this call certainly added nothing, and with `StoreUnavailable` if it may have.
   */
  restore(uncounted: UncountedUnits, operationId: string): Promise<void>;
}
