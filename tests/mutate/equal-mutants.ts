/** A mutant that no test can kill. */
export interface EqualMutant {
  readonly file: string;
  /** The line before the change and after it, without indentation. */
  readonly before: string;
  readonly after: string;
  readonly because: string;
}

/** They count neither as killed nor as survived. A line that changes here is judged anew. */
export const EQUAL_MUTANTS: readonly EqualMutant[] = [];
