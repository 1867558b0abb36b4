import type { paths } from '../../../../client/management-api.ts';

/** A key as the interface accepts it. The row is not checked here: the gateway does that, and names the faults. */
export type KeyToImport =
  paths['/api-keys/import']['post']['requestBody']['content']['application/json']['keys'][number];

/** A row of the file. */
export interface Row {
  /** From 1; the header of CSV is row 1. */
  readonly number: number;
  /** As it is in the file, without its line end. */
  readonly text: string;
  /** The key, or the reason why the row is not a key. */
  readonly content: { readonly key: KeyToImport } | { readonly fault: RowFault };
}

export interface RowFault {
  readonly code: string;
  /** The faulty fields; null if the fault is in the row as a whole. */
  readonly field: string | null;
  readonly message: string;
}

/** A rejected row: no key was made from it. */
export type RejectedRow = { readonly row: number } & RowFault;
