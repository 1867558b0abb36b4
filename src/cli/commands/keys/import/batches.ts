import type { KeyToImport, Row } from './row.ts';

/** A row that has a key. */
export interface KeyRow extends Row {
  readonly content: { readonly key: KeyToImport };
}

/** The rows of one request, and the faulty rows that were read with them and are not sent. */
export interface Batch {
  readonly rows: readonly KeyRow[];
  readonly faulty: readonly FaultyRow[];
}

interface FaultyRow extends Row {
  readonly content: Exclude<Row['content'], { readonly key: KeyToImport }>;
}

/** The most rows of a request that the gateway accepts, and the default. */
export const MAX_BATCH_ROWS = 500;
/** Less than the 4 MiB that the gateway accepts, to leave room for the rest of the body. */
const MAX_BATCH_BYTES = 3.5 * 1024 * 1024;
const MAX_KEY_BYTES = 1024 * 1024;

/** Splits rows, in their order, into batches of at most `size` rows that fit into a request. */
export async function* batchesOf(
  rows: AsyncIterable<Row> | Iterable<Row>,
  size: number,
): AsyncGenerator<Batch> {
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
