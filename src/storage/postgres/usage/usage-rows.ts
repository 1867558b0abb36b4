import { type RawBuilder, sql } from 'kysely';
import type { Counts } from '../../../usage/usage-slice.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** The columns of counts, and what they hold. Totals and lists have the first four, rows over time have all. */
const LIST_COLUMNS = {
  requests: 'requests',
  successful: 'successful',
  forwarded: 'forwarded',
  forwarded_us: 'forwardedUs',
} as const satisfies Record<string, keyof Counts>;
const ALL_COLUMNS = {
  ...LIST_COLUMNS,
  rate_limited: 'rateLimited',
  client_errors: 'clientErrors',
  server_errors: 'serverErrors',
  shadow_limited: 'shadowLimited',
  bytes_in: 'bytesIn',
  bytes_out: 'bytesOut',
} as const satisfies Record<string, keyof Counts>;

/** The tables of usage, and the type of each column of their primary keys. */
const TABLES = {
  usage_by_endpoint: { key_id: 'text', name: 'text' },
  usage_by_customer: { key_id: 'text', name: 'text' },
  usage_hours: { key_id: 'text', hour: 'timestamptz', plan_id: 'text' },
  usage_endpoint_days: { key_id: 'text', day: 'date', plan_id: 'text', name: 'text' },
  usage_customer_days: { key_id: 'text', day: 'date', plan_id: 'text', name: 'text' },
} as const;

/** Counts to be added under a key of a table: the values of its primary key, as text and in its order. */
export interface UsageRow {
  readonly key: readonly string[];
  readonly counts: Readonly<Counts>;
}

/** The counts of a row's columns, of which it may have the first four only. */
export function countsOfRow(row: Readonly<Record<keyof typeof LIST_COLUMNS, number>>): Counts {
  const { requests, successful, forwarded, forwarded_us: forwardedUs } = row;
  return {
    requests,
    successful,
    forwarded,
    forwardedUs,
    rateLimited: 0,
    clientErrors: 0,
    serverErrors: 0,
    shadowLimited: 0,
    bytesIn: 0,
    bytesOut: 0,
  };
}

/** For an upsert's `SET`: adds the new row's first four counts to those of the table, which the statement calls `stored`. */
export const ADD_TOTALS = addExcluded(LIST_COLUMNS);

/** Arrays for `unnest`, in the order of the first four columns: one parameter each, however many rows there are. */
export function totalsArrays(counts: readonly Readonly<Counts>[]): RawBuilder<unknown> {
  return countArrays(LIST_COLUMNS, counts);
}

/** Adds rows, new or not; no two may have the same key. */
export async function addRows(
  db: RecordsDatabase,
  table: keyof typeof TABLES,
  rows: readonly UsageRow[],
): Promise<void> {
  if (rows.length > 0) await upsert(table, rows).execute(db);
}

/** The same for a list; resolves with the names that are new. */
export async function addListRows(
  db: RecordsDatabase,
  table: 'usage_by_endpoint' | 'usage_by_customer',
  rows: readonly UsageRow[],
): Promise<readonly { readonly key_id: string; readonly name: string }[]> {
  if (rows.length === 0) return [];
  // A row that was there has been locked by its change.
  const stored = await sql<{ key_id: string; name: string; is_new: boolean }>`
    ${upsert(table, rows)} RETURNING key_id, name, (xmax = 0) AS is_new`.execute(db);
  return stored.rows.filter((row) => row.is_new);
}

function upsert(table: keyof typeof TABLES, rows: readonly UsageRow[]): RawBuilder<unknown> {
  const columns = table.startsWith('usage_by') ? LIST_COLUMNS : ALL_COLUMNS;
  const keys = Object.entries(TABLES[table]);
  const keyNames = keys.map(([name]) => name).join(', ');
  const keyArrays = keys.map(
    ([, type], index) => sql`${rows.map(({ key }) => key[index])}::${sql.raw(type)}[]`,
  );
  const counts = rows.map((row) => row.counts);
  return sql`
    INSERT INTO ${sql.table(table)} AS stored (${sql.raw(`${keyNames}, ${Object.keys(columns).join(', ')}`)})
    SELECT * FROM unnest(${sql.join(keyArrays)}, ${countArrays(columns, counts)})
    ON CONFLICT (${sql.raw(keyNames)}) DO UPDATE SET ${addExcluded(columns)}`;
}

function addExcluded(columns: Readonly<Record<string, keyof Counts>>): RawBuilder<unknown> {
  const sums = Object.keys(columns).map((name) => `${name} = stored.${name} + excluded.${name}`);
  return sql.raw(sums.join(', '));
}

function countArrays(
  columns: Readonly<Record<string, keyof Counts>>,
  counts: readonly Readonly<Counts>[],
): RawBuilder<unknown> {
  // As text, because the client escapes each element of an array.
  const arrays = Object.values(columns).map(
    (name) => sql`${`{${counts.map((each) => each[name]).join(',')}}`}::bigint[]`,
  );
  return sql.join(arrays);
}
