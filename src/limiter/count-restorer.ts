import type { Quota } from './rate-limiter.ts';

/** Requests of one key that a replica admitted on its own while the shared count could not be asked. */
export interface UncountedRequests {
  readonly keyId: string;
  readonly quota: Quota;
  /** At least 1. */
  readonly count: number;
}

/** Gives requests back to the shared count after an outage, so that a window holds what was really admitted. */
export interface CountRestorer {
  /**
   * Adds them to the key's open window of the same period; opens one where none is open, and leaves a window of another period
   * alone. Rejects with `StoreUnavailable`; then it is not known whether they were added.
   */
  restore(requests: UncountedRequests): Promise<void>;
}
