import { type RawBuilder, sql } from 'kysely';
import { bytesText } from './array-literals.ts';
import type { RecordsDatabase, RecordsTables } from './records-database.ts';

type Row = Readonly<Record<string, unknown>>;

/** Inserts rows, which all have the same columns, with one statement. */
export async function insertRows(
  trx: RecordsDatabase,
  table: keyof RecordsTables,
  rows: readonly Row[],
): Promise<void> {
  const columns = sql.join(Object.keys(rows[0] ?? {}).map((name) => sql.ref(name)));
  const given = recordset(table, rows);
  await sql`INSERT INTO ${sql.table(table)} (${columns}) SELECT ${columns} FROM ${given}`.execute(trx);
}

/** Writes the other columns of rows with an `id`, which all have the same columns, with one statement. */
export async function updateRows(
  trx: RecordsDatabase,
  table: 'consumer_keys' | 'plans',
  rows: readonly Row[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const assignments = Object.keys(first)
    .filter((name) => name !== 'id')
    .map((name) => sql`${sql.ref(name)} = ${sql.ref(`wanted.${name}`)}`);
  await sql`
    UPDATE ${sql.table(table)} AS stored SET ${sql.join(assignments)}
    FROM ${recordset(table, rows)} AS wanted WHERE stored.id = wanted.id`.execute(trx);
}

/**
 * Rows as one parameter: with one for each value both Postgres and its client take twice as long. A column of `jsonb` takes a value, and not
 * its text.
 */
function recordset(table: keyof RecordsTables, rows: readonly Row[]): RawBuilder<unknown> {
  const written = JSON.stringify(rows.map(withBytesAsText));
  return sql`json_populate_recordset(NULL::${sql.table(table)}, ${written}::json)`;
}

function withBytesAsText(row: Row): Row {
  const written = { ...row };
  for (const name in written) {
    const value = written[name];
    if (value instanceof Uint8Array) written[name] = bytesText(value);
  }
  return written;
}
