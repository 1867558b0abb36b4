import { type RawBuilder, sql } from 'kysely';
import { OTHER } from '../../../usage/cap-names.ts';
import type { Counts } from '../../../usage/usage-slice.ts';
import { textArray } from '../array-literals.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** Columns of counts, and their fields in `Counts`. */
type Columns = Readonly<Record<string, keyof Counts>>;
/** Totals and lists have the first four, rows over time have all. */
const LIST_COLUMNS = {
  requests: 'requests',
  successful: 'successful',
  forwarded: 'forwarded',
  forwarded_us: 'forwardedUs',
} as const satisfies Columns;
const ALL_COLUMNS = {
  ...LIST_COLUMNS,
  rate_limited: 'rateLimited',
  client_errors: 'clientErrors',
  server_errors: 'serverErrors',
  shadow_limited: 'shadowLimited',
  bytes_in: 'bytesIn',
  bytes_out: 'bytesOut',
} as const satisfies Columns;

/** The tables of usage over time, and the type of each column of their primary keys. */
const TABLES = {
  usage_hours: { key_id: 'text', hour: 'timestamptz', plan_id: 'text' },
  usage_endpoint_days: { key_id: 'text', day: 'date', plan_id: 'text', name: 'text' },
  usage_customer_days: { key_id: 'text', day: 'date', plan_id: 'text', name: 'text' },
} as const;

/**
 * Most that is added to a row, and that a row over time may have: exact in JSON as well. Redis may say any number: a sum that is out of
 * range would be rejected, and with it the usage of all keys of its shard.
 */
const MOST = Number.MAX_SAFE_INTEGER;
/** Most that totals and lists, which grow for good, may have: with `MOST` it fits into a bigint. */
const MOST_IN_ALL = 1e18;

/** The counts of a row of totals or of a list, which has the first four columns: the others are 0. */
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
    units: 0,
  };
}

/** `addExcluded` for the first four counts. */
export const ADD_TOTALS = addExcluded(LIST_COLUMNS, MOST_IN_ALL);

/** `countArrays` for the first four counts. */
export function totalsArrays(counts: readonly Readonly<Counts>[]): RawBuilder<unknown> {
  return countArrays(LIST_COLUMNS, counts);
}

/** Rows to be added to a table, kept by column: an object for each row would be garbage by the thousand. */
export class UsageRows<Table extends keyof typeof TABLES> {
  readonly table: Table;
  /** The values of each column of the primary key, as text. */
  readonly #keys: readonly string[][];
  readonly #counts: Readonly<Counts>[] = [];

  constructor(table: Table) {
    this.table = table;
    this.#keys = Object.keys(TABLES[table]).map(() => []);
  }

  /** No two rows may have the same key: a statement must not change a row twice. */
  add(counts: Readonly<Counts>, ...key: readonly string[]): void {
    for (let column = 0; column < this.#keys.length; column += 1) this.#keys[column]?.push(key[column] ?? '');
    this.#counts.push(counts);
  }

  /** The rows as a query: one parameter for each column, however many rows there are. */
  get query(): RawBuilder<unknown> {
    const keys = Object.values(TABLES[this.table]).map(
      (type, index) => sql`${textArray(this.#keys[index] ?? [])}::${sql.raw(type)}[]`,
    );
    return sql`SELECT * FROM unnest(${sql.join(keys)}, ${countArrays(ALL_COLUMNS, this.#counts)})`;
  }
}

/** Adds rows of usage over time, new or not. */
export async function addOverTime(db: RecordsDatabase, rows: UsageRows<keyof typeof TABLES>): Promise<void> {
  await upsert(rows.table, rows.query).execute(db);
}

/** What is added to some keys: by hour, and by day and name. */
export interface AddedRows {
  readonly hours: UsageRows<'usage_hours'>;
  readonly endpoints: UsageRows<'usage_endpoint_days'>;
  readonly customers: UsageRows<'usage_customer_days'>;
}

/**
 * Adds rows, new or not, and adds their names to the lists of the keys, whose totals are stored already. One statement, because each
 * costs this process as much as the rows of ten keys.
 */
export async function addRows(
  db: RecordsDatabase,
  { hours, endpoints, customers }: AddedRows,
): Promise<void> {
  await sql`
    WITH endpoints (${columnsOf(endpoints.table)}) AS (${endpoints.query}),
      customers (${columnsOf(customers.table)}) AS (${customers.query}),
      hours AS (${upsert(hours.table, hours.query)}),
      endpoint_days AS (${upsert(endpoints.table, sql`SELECT * FROM endpoints`)}),
      customer_days AS (${upsert(customers.table, sql`SELECT * FROM customers`)}),
      endpoint_names AS (${upsertNames('usage_by_endpoint', 'endpoints')}),
      customer_names AS (${upsertNames('usage_by_customer', 'customers')})
    UPDATE usage_totals AS stored SET
      endpoints = stored.endpoints + grown.endpoints,
      customers = stored.customers + grown.customers
    FROM (
      SELECT key_id, sum(endpoint) AS endpoints, sum(customer) AS customers FROM (
        SELECT key_id, name, is_new, 1 AS endpoint, 0 AS customer FROM endpoint_names
        UNION ALL SELECT key_id, name, is_new, 0, 1 FROM customer_names
      ) AS names WHERE is_new AND name <> ${OTHER} GROUP BY key_id
    ) AS grown WHERE stored.key_id = grown.key_id`.execute(db);
}

/** Adds the names of the query `added`, which has rows of days, to a list. Returns for each whether it is new in the list. */
function upsertNames(
  list: 'usage_by_endpoint' | 'usage_by_customer',
  added: 'endpoints' | 'customers',
): RawBuilder<unknown> {
  const columns = Object.keys(LIST_COLUMNS);
  const sums = columns.map((name) => `least(sum(${name}), ${MOST})`);
  // xmax tells whether a row is new: an update locks the row, which sets xmax.
  return sql`
    INSERT INTO ${sql.table(list)} AS stored (${sql.raw(['key_id', 'name', ...columns].join(', '))})
    SELECT key_id, name, ${sql.raw(sums.join(', '))} FROM ${sql.table(added)} GROUP BY key_id, name
    ON CONFLICT (key_id, name) DO UPDATE SET ${ADD_TOTALS}
    RETURNING key_id, name, (xmax = 0) AS is_new`;
}

function columnsOf(table: keyof typeof TABLES): RawBuilder<unknown> {
  return sql.raw([...Object.keys(TABLES[table]), ...Object.keys(ALL_COLUMNS)].join(', '));
}

function upsert(table: keyof typeof TABLES, added: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    INSERT INTO ${sql.table(table)} AS stored (${columnsOf(table)}) ${added}
    ON CONFLICT (${sql.raw(Object.keys(TABLES[table]).join(', '))}) DO UPDATE SET ${addExcluded(ALL_COLUMNS)}`;
}

/**
 * For an upsert's `SET`: adds the new row's counts to those of the table, which the statement calls `stored`. Takes a row down to `most`
 * first: one that was filled by an earlier version must not reject what is added.
 */
export function addExcluded(columns: Columns, most = MOST): RawBuilder<unknown> {
  const sums = Object.keys(columns).map(
    (name) => `${name} = least(least(stored.${name}, ${most}) + excluded.${name}, ${most})`,
  );
  return sql.raw(sums.join(', '));
}

/** Arrays for `unnest`, in the order of the columns: one parameter each, however many rows there are. */
export function countArrays(columns: Columns, counts: readonly Readonly<Counts>[]): RawBuilder<unknown> {
  // As text, because the client would escape each element of an array.
  const arrays = Object.values(columns).map(
    (name) => sql`${`{${counts.map((each) => Math.min(each[name], MOST)).join(',')}}`}::bigint[]`,
  );
  return sql.join(arrays);
}
