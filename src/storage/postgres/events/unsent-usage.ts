import { type RawBuilder, sql } from 'kysely';
import { BATCHED_TYPE } from '../../../events/event-types.ts';
import { addUnder, type Counts, onlyHourOf, type UsageSlice } from '../../../usage/usage-slice.ts';
import { textArray } from '../array-literals.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { addExcluded, countArrays } from '../usage/usage-rows.ts';
import { isHeardByWebhook } from './outbox.ts';

const IS_STREAMED = sql<boolean>`coalesce(usage_streamed_until > now(), false)`;

/**
 * Whether usage is kept for a webhook: one that is enabled, or was less than 3 days ago and may be enabled again. A delivery is tried for
 * about as long. One that was never enabled has `heard_until` 0. A condition.
 */
export const IS_USAGE_AWAITED = isHeardByWebhook(
  BATCHED_TYPE,
  sql<boolean>`(enabled OR (heard_until > 0 AND updated_at > now() - interval '3 days'))`,
);

/**
 * Whether events of usage are made: a condition on `audit_log_ends`. An enabled webhook hears them; or a stream does, and no disabled webhook
 * is waited for, which would miss them.
 */
export const IS_USAGE_HEARD = sql<boolean>`(
  ${isHeardByWebhook(BATCHED_TYPE)} OR (${IS_STREAMED} AND NOT ${IS_USAGE_AWAITED}))`;

/** Whether usage is kept for a webhook or a stream: a condition on `audit_log_ends`. Reads what was noted of webhooks: each batch asks. */
export const IS_USAGE_KEPT = sql<boolean>`(hears_usage OR ${IS_STREAMED})`;

const COLUMNS = {
  requests: 'requests',
  successful: 'successful',
  rate_limited: 'rateLimited',
  units: 'units',
  bytes_in: 'bytesIn',
  bytes_out: 'bytesOut',
} as const satisfies Readonly<Record<string, keyof Counts>>;

const HOUR_MS = 3_600_000;

/** The usage of a key, in slices of which most have one hour. */
interface HourlyUsage {
  readonly keyId: string;
  readonly hourly: readonly UsageSlice[];
}

/** The customers of a slice, by the names under which they are kept. */
export type CustomersOf = (slice: UsageSlice) => ReadonlyMap<string, Counts>;

/**
 * Adds usage of keys, in the transaction that adds it to their hours, to what the next events say. Of a slice with several hours no customer
 * is known by hour: events have its usage in their sums only.
 */
export async function addUnsent(
  db: RecordsDatabase,
  keys: readonly HourlyUsage[],
  customersOf: CustomersOf,
): Promise<void> {
  const hours = new SumsByKey(['hour', 'key_id']);
  const customers = new SumsByKey(['hour', 'key_id', 'customer_id']);
  for (const { keyId, hourly } of keys) {
    for (const slice of hourly) {
      for (const [hour, counts] of slice.hours) hours.add(counts, startOf(hour), keyId);
      const hour = onlyHourOf(slice);
      if (hour === undefined) continue;
      for (const [name, counts] of customersOf(slice)) customers.add(counts, startOf(hour), keyId, name);
    }
  }
  await addTo(db, 'usage_unsent', hours);
  await addTo(db, 'usage_unsent_customers', customers);
}

function startOf(hour: number): string {
  return new Date(hour * HOUR_MS).toISOString();
}

/** Counts by a primary key: a statement must not change a row twice. Plans do not matter. */
class SumsByKey {
  readonly columns: readonly string[];
  readonly #sums = new Map<string, Counts>();

  constructor(columns: readonly string[]) {
    this.columns = columns;
  }

  /** No part of a key has a tab. */
  add(counts: Readonly<Counts>, ...key: readonly string[]): void {
    addUnder(this.#sums, key.join('\t'), counts);
  }

  /** An array for each column of the key, and then for each of the counts. */
  get arrays(): readonly RawBuilder<unknown>[] {
    const keys = [...this.#sums.keys()].map((key) => key.split('\t'));
    return [
      ...this.columns.map((_, index) => sql`${textArray(keys.map((key) => key[index] ?? ''))}::text[]`),
      countArrays(COLUMNS, [...this.#sums.values()]),
    ];
  }
}

/** In the order of the primary key: transactions may wait for each other, but never deadlock. */
async function addTo(db: RecordsDatabase, table: string, sums: SumsByKey): Promise<void> {
  const key = sql.raw(sums.columns.join(', '));
  const listed = sql.raw(Object.keys(COLUMNS).join(', '));
  await sql`
    INSERT INTO ${sql.table(table)} AS stored (${key}, ${listed})
    SELECT hour::timestamptz, ${sql.raw(sums.columns.slice(1).join(', '))}, ${listed} FROM unnest(${sql.join(sums.arrays)})
      AS added (${key}, ${listed}) ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE SET ${addExcluded(COLUMNS)}`.execute(db);
}
