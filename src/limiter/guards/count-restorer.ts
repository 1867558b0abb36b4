import type { Limit } from '../limit.ts';

/** Units of one window that a replica allowed by itself while the shared limiter was unavailable. */
export interface UncountedUnits {
  readonly keyId: string;
  readonly limit: Limit;
  /** Whose window where the limit is for each customer. */
  readonly customerId: string;
  /** At least 1. */
  readonly units: number;
}

/** Gives units back to the shared count after an outage, so that a window holds what was really allowed. */
export interface CountRestorer {
  /**
   * Adds them to the open window; opens one where none is open, and leaves a deleted key alone. Again with the same operation, within ten
   * minutes, it adds nothing. Rejects with `NotCounted` where this call certainly added nothing, and with `StoreUnavailable` where that
   * is not known.
   */
  restore(uncounted: UncountedUnits, operationId: string): Promise<void>;
}
