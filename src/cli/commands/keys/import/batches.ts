import type { KeyToImport, Row } from './row.ts';

/** A row that has a key. */
export interface KeyRow extends Row {
  readonly content: { readonly key: KeyToImport };
}

/** Rows of one request, with those before its last that have no key. */
export interface Batch {
  readonly rows: readonly KeyRow[];
  readonly faulty: readonly FaultyRow[];
}

interface FaultyRow extends Row {
  readonly content: Exclude<Row['content'], { readonly key: KeyToImport }>;
}

/** Most rows of a request: as many as the gateway takes, and the default. */
export const MAX_BATCH_ROWS = 500;
/** Less than the 4 MiB that the gateway takes, by what surrounds the keys. */
const MAX_BATCH_BYTES = 3.5 * 1024 * 1024;
const MAX_KEY_BYTES = 1024 * 1024;

/** Rows in their order, at most `size` of them, and no more than a request may have in bytes. */
export async function* batchesOf(rows: AsyncIterable<Row>, size: number): AsyncGenerator<Batch> {
  let batch: { rows: KeyRow[]; faulty: FaultyRow[]; bytes: number } = { rows: [], faulty: [], bytes: 0 };
  for await (const row of rows) {
    const { content } = row;
    if (!('key' in content)) {
      batch.faulty.push({ ...row, content });
      continue;
    }
    const bytes = Buffer.byteLength(JSON.stringify(content.key));
    if (bytes > MAX_KEY_BYTES) {
      const fault = { code: 'invalid_row', field: null, message: 'has more than 1 MiB' };
      batch.faulty.push({ ...row, content: { fault } });
      continue;
    }
    if (batch.rows.length === size || batch.bytes + bytes > MAX_BATCH_BYTES) {
      yield batch;
      batch = { rows: [], faulty: [], bytes: 0 };
    }
    batch.rows.push({ ...row, content });
    batch.bytes += bytes;
  }
  yield batch;
}
