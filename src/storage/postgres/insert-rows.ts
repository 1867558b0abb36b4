import { sql } from 'kysely';
import { bytesText } from './array-literals.ts';
import type { RecordsDatabase, RecordsTables } from './records-database.ts';

/**
 * Inserts rows, which all have the same columns, with one statement. All are one parameter: with one for each value both Postgres and its
 * client take twice as long. A column of `jsonb` takes a value, and not its text.
 */
export async function insertRows(
  trx: RecordsDatabase,
  table: keyof RecordsTables,
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<void> {
  const columns = sql.join(Object.keys(rows[0] ?? {}).map((name) => sql.ref(name)));
  const written = JSON.stringify(rows.map(withBytesAsText));
  await sql`
    INSERT INTO ${sql.table(table)} (${columns})
    SELECT ${columns} FROM json_populate_recordset(NULL::${sql.table(table)}, ${written}::json)`.execute(trx);
}

function withBytesAsText(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const written = { ...row };
  for (const name in written) {
    const value = written[name];
    if (value instanceof Uint8Array) written[name] = bytesText(value);
  }
  return written;
}
