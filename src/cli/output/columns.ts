/** What a cell may hold. Null and undefined are empty. */
export type Cell = string | number | boolean | null | undefined;

/** How lists and single objects of one kind are shown. */
export interface Listing<T> {
  /** In the order of a table, the one that people look for first. `toCell` is the value without decoration, as CSV has it. */
  readonly columns: readonly { readonly name: string; readonly toCell: (item: T) => Cell }[];
  /** What `-o id` prints. */
  readonly idOf: (item: T) => string;
}
