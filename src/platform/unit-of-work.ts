/** Writes to the record store that are committed together or not at all. */
export interface UnitOfWork {
  /**
   * Runs work in one transaction, which includes the queries and transactions of everything that the work awaits. Resolves with the result
   * of the work, after the commit and the effects that wait for it. If the work rejects, this rejects, and nothing is written.
   */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Runs work in the current unit, or else in its own. */
  join<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Within a unit: runs work. If it rejects, only its writes are rolled back, and its effects are dropped. */
  attempt<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Runs an effect that must not be seen before the writes of the unit: after its commit, or at once outside of a unit. */
  afterCommit(effect: () => Promise<void>): Promise<void>;
}
