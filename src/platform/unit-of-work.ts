/** Writes to the record store that are made together or not at all. */
export interface UnitOfWork {
  /**
   * Runs work whose queries and transactions, also those of everything that it awaits, are part of one transaction. Resolves with what the
   * work does after the commit and the effects that wait for it; rejects, with nothing written, when the work does.
   */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Runs work as a part of the unit under way, or else in one of its own. */
  join<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Within a unit: runs work whose writes alone are undone, and whose effects are dropped, when it rejects. */
  attempt<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Runs an effect that must not be seen before the writes of the unit: after its commit, outside of a unit at once. */
  afterCommit(effect: () => Promise<void>): Promise<void>;
}
