import { type RawBuilder, sql } from 'kysely';
import { addCounts, type Counts, noCounts } from '../../../usage/usage-slice.ts';
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

/** The tables of usage over time, and the type of each column of their primary keys. */
const TABLES = {
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

/** Adds rows of usage over time, new or not; no two may have the same key. */
export async function addOverTime(
  db: RecordsDatabase,
  table: keyof typeof TABLES,
  rows: readonly UsageRow[],
): Promise<void> {
  if (rows.length > 0) await upsert(table, unnested(table, rows)).execute(db);
}

/** Where the counts of names are kept. */
interface NameTables {
  readonly days: 'usage_endpoint_days' | 'usage_customer_days';
  readonly names: 'usage_by_endpoint' | 'usage_by_customer';
}

/** The same for days, by name, together with the lists of names; resolves with the names that are new in these. */
export async function addDays(
  db: RecordsDatabase,
  { days, names }: NameTables,
  rows: readonly UsageRow[],
): Promise<readonly { readonly key_id: string; readonly name: string }[]> {
  if (rows.length === 0) return [];
  const columns = Object.keys(LIST_COLUMNS);
  const sums = columns.map((name) => `sum(${name})`);
  // A row that was there has been locked by its change.
  const stored = await sql<{ key_id: string; name: string; is_new: boolean }>`
    WITH added (${sql.raw(columnsOf(days).join(', '))}) AS (${unnested(days, rows)}),
      days AS (${upsert(days, sql`SELECT * FROM added`)})
    INSERT INTO ${sql.table(names)} AS stored (${sql.raw(['key_id', 'name', ...columns].join(', '))})
    SELECT key_id, name, ${sql.raw(sums.join(', '))} FROM added GROUP BY key_id, name
    ON CONFLICT (key_id, name) DO UPDATE SET ${ADD_TOTALS}
    RETURNING key_id, name, (xmax = 0) AS is_new`.execute(db);
  return stored.rows.filter((row) => row.is_new);
}

/** One row for each key: a statement must not change a row twice. */
export function summed(rows: readonly UsageRow[]): readonly UsageRow[] {
  const sums = new Map<string, { readonly key: readonly string[]; readonly counts: Counts }>();
  for (const { key, counts } of rows) {
    const id = key.join('\t');
    const sum = sums.get(id) ?? { key, counts: noCounts() };
    addCounts(sum.counts, counts);
    sums.set(id, sum);
  }
  return [...sums.values()];
}

function columnsOf(table: keyof typeof TABLES): readonly string[] {
  return [...Object.keys(TABLES[table]), ...Object.keys(ALL_COLUMNS)];
}

/** Rows as a query: one parameter for each column, however many rows there are. */
function unnested(table: keyof typeof TABLES, rows: readonly UsageRow[]): RawBuilder<unknown> {
  const keys = Object.values(TABLES[table]).map(
    (type, index) => sql`${rows.map(({ key }) => key[index])}::${sql.raw(type)}[]`,
  );
  const counts = rows.map((row) => row.counts);
  return sql`SELECT * FROM unnest(${sql.join(keys)}, ${countArrays(ALL_COLUMNS, counts)})`;
}

function upsert(table: keyof typeof TABLES, added: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    INSERT INTO ${sql.table(table)} AS stored (${sql.raw(columnsOf(table).join(', '))}) ${added}
    ON CONFLICT (${sql.raw(Object.keys(TABLES[table]).join(', '))}) DO UPDATE SET ${addExcluded(ALL_COLUMNS)}`;
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
