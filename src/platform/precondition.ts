import { VersionMismatch } from '../errors.ts';

/** Identifies one state of a record among all its states, also if the record is deleted and created again. */
export interface RecordState {
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** Grows by one with every change. */
  readonly version: number;
}

/**
 * Whether a change may be made to a record in its present state; undefined = there is no such record. Stores check it in the transaction of
 * the change, with the record locked: of two changes to the same state, only one is made.
 */
export type Precondition = (present: RecordState | undefined) => boolean;

/** Throws `VersionMismatch` if the condition does not hold. */
export function requireState(expects: Precondition | undefined, present: RecordState | undefined): void {
  if (expects !== undefined && !expects(present)) throw new VersionMismatch();
}
