import { sql } from 'kysely';
import { KEY_LAYOUT, type UsageBatch } from '../../../usage/live-usage.ts';
import type { ApplyOutcome } from '../../../usage/usage-history.ts';
import { addCounts, noCounts, totalsOf, type UsageSlice } from '../../../usage/usage-slice.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { addNames, addNamesOfDeleted, type KeyAddition } from './add-usage-names.ts';
import { ADD_TOTALS, addOverTime, summed, totalsArrays, type UsageRow } from './usage-rows.ts';

/** Keys whose rows share statements. */
const KEYS_AT_ONCE = 256;

/**
 * Adds a batch within the transaction `db`: first its id, whose row lock lets one transaction at a time add to a shard, then a handful of
 * statements for some hundred keys at a time. Keys are locked against deletion, in the order of their ids; a key that is gone has no
 * totals and no lists any more, but its usage over time is kept.
 */
export async function applyUsageBatch(db: RecordsDatabase, batch: UsageBatch): Promise<ApplyOutcome> {
  const lastId = await (batch.source === KEY_LAYOUT ? claimKeyBatch(db, batch) : claimShardBatch(db, batch));
  if (lastId !== undefined) return { kind: lastId === batch.id ? 'applied_before' : 'outdated' };
  await noteWriters(db, batch);
  await preferIndexes(db);
  const keys = [...Map.groupBy(batch.slices, ({ keyId }) => keyId)]
    .map(([keyId, slices]) => ({ keyId, slices }))
    .toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1));
  for (let start = 0; start < keys.length; start += KEYS_AT_ONCE) {
    await addKeys(db, keys.slice(start, start + KEYS_AT_ONCE), batch.source);
  }
  return { kind: 'applied' };
}

/** Makes the batch's id the last one of its source. Resolves with the last id where it is not below. */
async function claimShardBatch(
  db: RecordsDatabase,
  { shard, source, id }: UsageBatch,
): Promise<number | undefined> {
  const { numAffectedRows } = await sql`
    INSERT INTO usage_shards AS stored (shard, source, last_batch, moved_at) VALUES (${shard}, ${source}, ${id}, now())
    ON CONFLICT (shard, source) DO UPDATE SET last_batch = excluded.last_batch, moved_at = excluded.moved_at
    WHERE stored.last_batch < excluded.last_batch`.execute(db);
  if (numAffectedRows === 1n) return undefined;
  const { rows } = await sql<{ last_batch: number }>`
    SELECT last_batch FROM usage_shards WHERE shard = ${shard} AND source = ${source}`.execute(db);
  return rows[0]?.last_batch;
}

/**
 * The same for a batch of one key, with the id that version 0.1 compares too. One of a key that is gone is as good as applied: the id by which
 * it is known went with the key.
 */
async function claimKeyBatch(db: RecordsDatabase, { id, slices }: UsageBatch): Promise<number | undefined> {
  const keyId = slices[0]?.keyId;
  const { numAffectedRows } = await sql`
    INSERT INTO usage_totals AS stored (key_id, last_batch, requests, successful, forwarded, forwarded_us)
    SELECT id, ${id}, 0, 0, 0, 0 FROM consumer_keys WHERE id = ${keyId} FOR KEY SHARE
    ON CONFLICT (key_id) DO UPDATE SET last_batch = excluded.last_batch
    WHERE stored.last_batch < excluded.last_batch`.execute(db);
  if (numAffectedRows === 1n) return undefined;
  const { rows } = await sql<{ last_batch: number }>`
    SELECT last_batch FROM usage_totals WHERE key_id = ${keyId}`.execute(db);
  return rows[0]?.last_batch ?? id;
}

async function noteWriters(db: RecordsDatabase, { shard, writers }: UsageBatch): Promise<void> {
  if (writers.size === 0) return;
  await sql`
    INSERT INTO usage_writers AS stored (shard, writer, last_sequence, moved_at)
    SELECT ${shard}, writer, last_sequence, now()
    FROM unnest(${[...writers.keys()]}::text[], ${[...writers.values()]}::bigint[]) AS added (writer, last_sequence)
    ON CONFLICT (shard, writer) DO UPDATE SET last_sequence = excluded.last_sequence, moved_at = excluded.moved_at
    WHERE stored.last_sequence < excluded.last_sequence`.execute(db);
}

/**
 * For this transaction. A few hundred rows are looked up in tables that have many: as long as these are middling, the planner would
 * rather read them whole, for each chunk of keys again.
 */
async function preferIndexes(db: RecordsDatabase): Promise<void> {
  await sql`SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`.execute(
    db,
  );
}

async function addKeys(db: RecordsDatabase, keys: readonly KeyAddition[], source: string): Promise<void> {
  const plans = await lockKeys(db, keys);
  const present = keys
    .filter(({ keyId }) => plans.has(keyId))
    .map(({ keyId, slices }) => ({
      keyId,
      // Version 0.1 did not say which plan applied.
      slices:
        source === KEY_LAYOUT
          ? slices.map((slice) => ({ ...slice, planId: plans.get(keyId) ?? 'default' }))
          : slices,
    }));
  const sizes = await addTotals(db, present);
  const add = (list: 'endpoints' | 'customers') =>
    addNames(db, list, { keys: present, sizeOf: (keyId) => sizes.get(keyId)?.[list] ?? 0 });
  const endpoints = await add('endpoints');
  const customers = await add('customers');
  await growLists(db, endpoints, customers);
  const deleted = keys.filter(({ keyId }) => !plans.has(keyId)).flatMap(({ slices }) => slices);
  await addNamesOfDeleted(db, 'endpoints', deleted);
  await addNamesOfDeleted(db, 'customers', deleted);
  const slices = [...present.flatMap((key) => key.slices), ...deleted];
  await addOverTime(db, 'usage_hours', summed(hourRows(slices)));
}

/** Resolves with the keys that exist and their own plans; they can't be deleted until the transaction ends. */
async function lockKeys(
  db: RecordsDatabase,
  keys: readonly KeyAddition[],
): Promise<ReadonlyMap<string, string | null>> {
  const { rows } = await sql<{ id: string; plan_id: string | null }>`
    SELECT id, plan_id FROM consumer_keys WHERE id = ANY (${keys.map(({ keyId }) => keyId)}::text[])
    ORDER BY id FOR KEY SHARE`.execute(db);
  return new Map(rows.map((row) => [row.id, row.plan_id]));
}

/** Resolves with how many names each key's lists have. */
async function addTotals(
  db: RecordsDatabase,
  keys: readonly KeyAddition[],
): Promise<ReadonlyMap<string, { readonly endpoints: number; readonly customers: number }>> {
  if (keys.length === 0) return new Map();
  const totals = keys.map(({ slices }) => {
    const sum = noCounts();
    for (const slice of slices) addCounts(sum, totalsOf(slice));
    return sum;
  });
  const lastUses = keys.map(({ slices }) => Math.max(...slices.map((slice) => slice.lastUsedAtS)));
  const { rows } = await sql<{ key_id: string; endpoints: number; customers: number }>`
    INSERT INTO usage_totals AS stored (key_id, last_used_at, requests, successful, forwarded, forwarded_us)
    SELECT key_id, to_timestamp(last_used_at), requests, successful, forwarded, forwarded_us FROM unnest(
      ${keys.map(({ keyId }) => keyId)}::text[], ${lastUses}::double precision[], ${totalsArrays(totals)}
    ) AS added (key_id, last_used_at, requests, successful, forwarded, forwarded_us)
    ON CONFLICT (key_id) DO UPDATE SET
      last_used_at = greatest(stored.last_used_at, excluded.last_used_at), ${ADD_TOTALS}
    RETURNING key_id, endpoints, customers`.execute(db);
  return new Map(rows.map((row) => [row.key_id, row]));
}

async function growLists(
  db: RecordsDatabase,
  endpoints: ReadonlyMap<string, number>,
  customers: ReadonlyMap<string, number>,
): Promise<void> {
  const keyIds = [...new Set([...endpoints.keys(), ...customers.keys()])];
  if (keyIds.length === 0) return;
  await sql`
    UPDATE usage_totals AS stored SET
      endpoints = stored.endpoints + grown.endpoints,
      customers = stored.customers + grown.customers
    FROM unnest(
      ${keyIds}::text[],
      ${keyIds.map((keyId) => endpoints.get(keyId) ?? 0)}::integer[],
      ${keyIds.map((keyId) => customers.get(keyId) ?? 0)}::integer[]
    ) AS grown (key_id, endpoints, customers)
    WHERE stored.key_id = grown.key_id`.execute(db);
}

function hourRows(slices: readonly UsageSlice[]): readonly UsageRow[] {
  return slices.flatMap(({ keyId, planId, hours }) =>
    [...hours].map(([hour, counts]) => ({
      key: [keyId, new Date(hour * 3_600_000).toISOString(), planId],
      counts,
    })),
  );
}
