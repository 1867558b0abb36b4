import type { Column, Listing } from './columns.ts';

/** A secret that a command has made: shown this once, by a link, or in a file. */
interface NewSecret {
  readonly secret?: string;
  readonly handover?: { readonly url: string };
}

export const SECRET_COLUMN: Column<NewSecret> = {
  name: 'secret',
  toCell: ({ secret, handover }) => handover?.url ?? secret ?? '(in the file)',
};

interface Rotated extends NewSecret {
  readonly previousValidUntil: string | null;
}

/** How a rotation is shown. `idField` has the id of what was rotated. */
export function rotatedListing<Field extends string>(
  idField: Field,
): Listing<Rotated & Readonly<Record<Field, string>>> {
  return {
    columns: [
      { name: 'id', toCell: (rotated) => rotated[idField] },
      SECRET_COLUMN,
      { name: 'previous valid until', toCell: ({ previousValidUntil }) => previousValidUntil },
    ],
    idOf: (rotated) => rotated[idField],
  };
}
