/**
 * Writes to the record store that are committed together or not at all. The record store itself counts as one too, in which each write is
 * committed when its promise resolves.
 */
export interface UnitOfWork {
  /** Runs an effect that must not be seen before the writes: after the commit of the unit, or at once where writes are already committed. */
  afterCommit(effect: () => Promise<void>): Promise<void>;
}
