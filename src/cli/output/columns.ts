/** What a cell may hold. Null and undefined are empty. */
export type Cell = string | number | boolean | null | undefined;

/** How lists and single objects of one kind are shown. */
export interface Listing<T> {
  /** In the order of a table: the column that people look for comes first. `toCell` is the value without formatting, as CSV has it. */
  readonly columns: readonly Column<T>[];
  /** What `-o id` prints. */
  readonly idOf: (item: T) => string;
  /** Whether a table is wider than the terminal rather than cut off: it has what can't be shown again, or what is read to its end. */
  readonly isWhole?: true;
}

export interface Column<T> {
  readonly name: string;
  /** The heading in a table, if the name is too long for people. */
  readonly heading?: string;
  readonly toCell: (item: T) => Cell;
}

/** How the response to a deletion is shown: a sentence, and the id in `idField`. */
export function doneListing<Field extends string>(
  idField: Field,
): Listing<Readonly<Record<Field | 'message', string>>> {
  return {
    columns: [
      { name: 'id', toCell: (done) => done[idField] },
      { name: 'message', toCell: ({ message }) => message },
    ],
    idOf: (done) => done[idField],
  };
}

export function headingOf({ name, heading }: Pick<Column<never>, 'name' | 'heading'>): string {
  return heading ?? name;
}
