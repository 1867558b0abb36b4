import type { paths } from '../../../../client/management-api.ts';

/** A key as the interface takes it. What a row says is not checked here: the gateway does that, and names what is wrong. */
export type KeyToImport =
  paths['/api-keys/import']['post']['requestBody']['content']['application/json']['keys'][number];

/** A row of the file. */
export interface Row {
  /** From 1; the header of CSV is row 1. */
  readonly number: number;
  /** As it is in the file, without its line end. */
  readonly text: string;
  /** The key, or why the row is none. */
  readonly content: { readonly key: KeyToImport } | { readonly fault: RowFault };
}

export interface RowFault {
  readonly code: string;
  /** The fields that it is about; null where it is about the row as a whole. */
  readonly field: string | null;
  readonly message: string;
}

/** A row of which no key was made. */
export type RejectedRow = { readonly row: number } & RowFault;
