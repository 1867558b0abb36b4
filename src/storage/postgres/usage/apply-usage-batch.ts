import { sql } from 'kysely';
import type { UsageBatch } from '../../../usage/live-usage.ts';
import { NO_CAPS, SliceTable } from '../../../usage/slice-table.ts';
import type { ApplyOutcome } from '../../../usage/usage-history.ts';
import { addCounts, noCounts, type UsageSlice } from '../../../usage/usage-slice.ts';
import { textArray } from '../array-literals.ts';
import { addUnsent, type CustomersOf, IS_USAGE_KEPT } from '../events/unsent-usage.ts';
import type { RecordsDatabase } from '../records-database.ts';
import {
  type KeyAddition,
  type NameDays,
  type NamedRows,
  nameRows,
  nameRowsOfDeleted,
  placed,
} from './name-rows.ts';
import { ADD_TOTALS, addOverTime, addRows, totalsArrays, UsageRows } from './usage-rows.ts';

/**
 * Class of the advisory locks, one for each shard, that a transaction takes before it claims the id of a batch. Locks that are named by two
 * numbers never conflict with those named by one.
 */
export const SHARD_LOCKS = 740_426_535;

/**
 * How far the id of a batch may be ahead of the clock of Postgres, or of the shard's last batch: ids go on from there after the clock of
 * Redis was set back. Microseconds.
 */
const DAY_US = 24 * 3_600_000_000;

/** Most keys whose rows share statements, and most names of such keys together. A single key may have more names. */
const KEYS_AT_ONCE = 256;
const NAMES_AT_ONCE = 20_000;

/**
 * For this transaction: makes the planner use indexes. A few hundred rows are looked up in large tables. While a table is of medium
 * size, the planner would read all of it, for each chunk of keys again.
 */
const PREFER_INDEXES = sql`set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`;

/**
 * Adds a batch within the transaction `db`: first claims its id, under a lock that lets one transaction at a time add to a shard, then
 * runs a few statements for some hundred keys at a time. Keys are locked against deletion, in the order of their ids. A deleted key has
 * no totals and no lists any more, but its usage over time is kept. `requireHeld` is called before each chunk and before the commit.
 */
export async function applyUsageBatch(
  db: RecordsDatabase,
  batch: UsageBatch,
  requireHeld: () => void = () => {},
): Promise<ApplyOutcome> {
  const claim = await claimId(db, batch);
  if ('lastId' in claim) return { kind: claim.lastId === batch.id ? 'applied_before' : 'outdated' };
  const keys = [...Map.groupBy(batch.slices, ({ keyId }) => keyId)]
    .map(([keyId, hourly]) => ({ keyId, slices: addedUp(hourly), hourly }))
    .toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1));
  for (const chunk of chunksOf(keys)) {
    requireHeld();
    const customersOf = await addKeys(db, chunk);
    if (claim.isKept) await addUnsent(db, chunk, customersOf);
  }
  requireHeld();
  return { kind: 'applied' };
}

/**
 * Makes the batch's id the last one of its source, and notes the writes that are in it. Resolves with whether usage is kept for events,
 * or with the last id if that is not lower. Throws where the id is far ahead: all later batches of the source would be taken for outdated.
 * The lock is on the shard and not on its row: other transactions can't see the row of a source's first batch yet.
 */
async function claimId(
  db: RecordsDatabase,
  { shard, source, id, writers }: UsageBatch,
): Promise<{ readonly isKept: boolean } | { readonly lastId: number }> {
  const claimed = await sql<{ isKept: boolean }>`
    WITH claimed AS (
      INSERT INTO usage_shards AS stored (shard, source, last_batch, moved_at)
      SELECT ${shard}, ${source}, ${id}, now() FROM pg_advisory_xact_lock(${SHARD_LOCKS}, ${shard})
      WHERE ${id} <= ${DAY_US} + greatest(
        extract(epoch FROM now()) * 1000000, (SELECT max(last_batch) FROM usage_shards WHERE shard = ${shard}))
      ON CONFLICT (shard, source) DO UPDATE SET last_batch = excluded.last_batch, moved_at = excluded.moved_at
      WHERE stored.last_batch < excluded.last_batch
      RETURNING shard
    ), noted AS (
      INSERT INTO usage_writers AS stored (shard, writer, last_sequence, moved_at)
      SELECT shard, writer, last_sequence, now() FROM claimed,
        unnest(${[...writers.keys()]}::text[], ${[...writers.values()]}::bigint[]) AS added (writer, last_sequence)
      ON CONFLICT (shard, writer) DO UPDATE SET last_sequence = excluded.last_sequence, moved_at = excluded.moved_at
      WHERE stored.last_sequence < excluded.last_sequence
    )
    SELECT ${PREFER_INDEXES}, (SELECT ${IS_USAGE_KEPT} FROM audit_log_ends) AS "isKept" FROM claimed`.execute(
    db,
  );
  const [first] = claimed.rows;
  if (first !== undefined) return first;
  const { rows } = await sql<{ last_batch: number }>`
    SELECT last_batch FROM usage_shards WHERE shard = ${shard} AND source = ${source}`.execute(db);
  const lastId = rows[0]?.last_batch ?? 0;
  if (lastId < id)
    throw new Error(`The id of the batch, ${id}, is more than a day ahead of Postgres's clock`);
  return { lastId };
}

/** One slice for each day and plan: a statement must not change a row twice. */
function addedUp(slices: readonly UsageSlice[]): readonly UsageSlice[] {
  if (slices.length === 1) return slices;
  const table = new SliceTable(NO_CAPS, 0);
  for (const slice of slices) table.add(slice);
  return table.slices;
}

/** Splits the keys, in their order, into chunks that share statements. */
function* chunksOf<Key extends KeyAddition>(keys: readonly Key[]): Generator<readonly Key[]> {
  let chunk: Key[] = [];
  let names = 0;
  for (const key of keys) {
    const namesOfKey = key.slices.reduce(
      (sum, { endpoints, customers }) => sum + endpoints.size + customers.size,
      0,
    );
    if (chunk.length === KEYS_AT_ONCE || (chunk.length > 0 && names + namesOfKey > NAMES_AT_ONCE)) {
      yield chunk;
      chunk = [];
      names = 0;
    }
    chunk.push(key);
    names += namesOfKey;
  }
  if (chunk.length > 0) yield chunk;
}

/** Resolves with the customers of a slice by the names under which they are kept. */
async function addKeys(db: RecordsDatabase, keys: readonly KeyAddition[]): Promise<CustomersOf> {
  const sizes = await addTotals(db, keys);
  const present = keys.filter(({ keyId }) => sizes.has(keyId));
  const rowsBy = <Days extends NameDays>(days: Days, list: 'endpoints' | 'customers') =>
    nameRows(db, days, { keys: present, sizeOf: (keyId) => sizes.get(keyId)?.[list] ?? 0 });
  const endpoints = await rowsBy('usage_endpoint_days', 'endpoints');
  const customers = await rowsBy('usage_customer_days', 'customers');
  if (present.length > 0)
    await addRows(db, { hours: hourRows(present), endpoints: endpoints.rows, customers: customers.rows });
  const deleted = keys.filter(({ keyId }) => !sizes.has(keyId));
  const ofDeleted = deleted.length > 0 ? await addDeletedKeys(db, deleted) : undefined;
  return (slice) => {
    const { placesOf } = ofDeleted === undefined || sizes.has(slice.keyId) ? customers : ofDeleted;
    const places = placesOf(slice);
    return places === undefined ? slice.customers : placed(slice.customers, places);
  };
}

/** Adds the usage of deleted keys, to the usage over time only. Resolves with the rows of their customers. */
async function addDeletedKeys(
  db: RecordsDatabase,
  keys: readonly KeyAddition[],
): Promise<NamedRows<'usage_customer_days'>> {
  await addOverTime(db, hourRows(keys));
  await addOverTime(db, (await nameRowsOfDeleted(db, 'usage_endpoint_days', keys)).rows);
  const customers = await nameRowsOfDeleted(db, 'usage_customer_days', keys);
  await addOverTime(db, customers.rows);
  return customers;
}

/** Adds to the totals of existing keys, which can't be deleted until the transaction ends. Resolves with the lengths of their lists. */
async function addTotals(
  db: RecordsDatabase,
  keys: readonly KeyAddition[],
): Promise<ReadonlyMap<string, { readonly endpoints: number; readonly customers: number }>> {
  const keyIds = keys.map(({ keyId }) => keyId);
  const totals = keys.map(({ slices }) => {
    const sum = noCounts();
    for (const { hours } of slices) for (const counts of hours.values()) addCounts(sum, counts);
    return sum;
  });
  const lastUses = keys.map(({ slices }) => Math.max(...slices.map((slice) => slice.lastUsedAtS)));
  const { rows } = await sql<{ key_id: string; endpoints: number; customers: number }>`
    INSERT INTO usage_totals AS stored (key_id, last_used_at, requests, successful, forwarded, forwarded_us)
    SELECT key_id, to_timestamp(last_used_at), requests, successful, forwarded, forwarded_us FROM unnest(
      ${textArray(keyIds)}::text[], ${`{${lastUses.join(',')}}`}::double precision[], ${totalsArrays(totals)}
    ) AS added (key_id, last_used_at, requests, successful, forwarded, forwarded_us)
    JOIN consumer_keys ON id = key_id ORDER BY id FOR KEY SHARE OF consumer_keys
    ON CONFLICT (key_id) DO UPDATE SET
      last_used_at = greatest(stored.last_used_at, excluded.last_used_at), ${ADD_TOTALS}
    RETURNING key_id, endpoints, customers`.execute(db);
  return new Map(rows.map((row) => [row.key_id, row]));
}

function hourRows(keys: readonly KeyAddition[]): UsageRows<'usage_hours'> {
  const rows = new UsageRows('usage_hours');
  // Nearly all slices have the same hour.
  let lastHour = Number.NaN;
  let start = '';
  for (const { keyId, slices } of keys) {
    for (const { planId, hours } of slices) {
      for (const [hour, counts] of hours) {
        if (hour !== lastHour) start = new Date(hour * 3_600_000).toISOString();
        lastHour = hour;
        rows.add(counts, keyId, start, planId);
      }
    }
  }
  return rows;
}
