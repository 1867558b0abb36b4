import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Reports changes that are committed but could not be published to all replicas at once: replicas find them in the record store, within
 * `APPLIES_WITHIN_S`. The work that made the change is found by its asynchronous context, so that the code in between need not know of it.
 */
export class ChangeDeferrals {
  readonly #works = new AsyncLocalStorage<() => void>();

  /** Runs work, and calls `deferred` for each of its changes that is deferred, before the work resolves. */
  watch<Result>(deferred: () => void, work: () => Promise<Result>): Promise<Result> {
    return this.#works.run(deferred, work);
  }

  /** Called for a change that is deferred. */
  note(): void {
    this.#works.getStore()?.();
  }
}

/** How long after its commit a deferred change is in force on every replica, at most. Seconds. */
export const APPLIES_WITHIN_S = 3;
