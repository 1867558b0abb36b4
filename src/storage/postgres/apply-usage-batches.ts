import { sql } from 'kysely';
import { placeNames } from '../../usage/capped-list.ts';
import type { OnFlushStep } from '../../usage/flush-steps.ts';
import type { UsageBatch } from '../../usage/live-usage.ts';
import type { ApplyOutcome } from '../../usage/usage-history.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../usage/usage-names.ts';
import type { Counts } from '../../usage/usage-sums.ts';
import type { RecordsDatabase } from './records-database.ts';
import {
  ADD_EXCLUDED,
  addRows,
  addToKnownRows,
  countArrays,
  type UsageListTable,
  type UsageRow,
} from './usage-tables.ts';

/** How many names a key's lists have. */
interface ListSizes {
  readonly endpoints: number;
  readonly customers: number;
}

/**
 * Adds batches of different keys within the transaction `db`. A handful of statements, however many batches there are: locking the keys
 * against deletion, the totals with the ids (whose row locks let one transaction at a time add to a key), and then each list.
 * Everybody locks in the order of the ids, so that no two wait for each other.
 */
export async function applyUsageBatches(
  db: RecordsDatabase,
  batches: readonly UsageBatch[],
  onStep: OnFlushStep,
): Promise<ReadonlyMap<UsageBatch, ApplyOutcome>> {
  const ordered = batches.toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1));
  await preferIndexes(db);
  const keyIds = await lockKeys(
    db,
    ordered.map((batch) => batch.keyId),
  );
  onStep('begun');
  const present = ordered.filter((batch) => keyIds.has(batch.keyId));
  const sizes = await addTotals(db, present);
  const isNew = (batch: UsageBatch) => sizes.has(batch.keyId);
  const added = present.filter(isNew);
  onStep('totals_added');
  const newEndpoints = await addNames(db, 'usage_by_endpoint', endpointsOf(added), (keyId) =>
    room(MAX_ENDPOINTS, sizes.get(keyId)?.endpoints),
  );
  onStep('endpoints_added');
  const newCustomers = await addNames(db, 'usage_by_customer', customersOf(added), (keyId) =>
    room(MAX_CUSTOMERS, sizes.get(keyId)?.customers),
  );
  await growLists(db, newEndpoints, newCustomers);
  onStep('customers_added');
  await addHours(db, added);
  onStep('hours_added');
  const lastIds = await readLastIds(
    db,
    present.filter((batch) => !isNew(batch)),
  );
  return new Map(
    batches.map((batch) => [batch, outcomeOf(batch, sizes.has(batch.keyId), lastIds.get(batch.keyId))]),
  );
}

function outcomeOf(batch: UsageBatch, isAdded: boolean, lastId: number | undefined): ApplyOutcome {
  if (isAdded) return { kind: 'applied' };
  if (lastId === undefined) return { kind: 'key_gone' };
  return lastId === batch.id ? { kind: 'applied_before' } : { kind: 'overtaken', lastId };
}

function room(cap: number, taken = 0): number {
  return Math.max(cap - taken, 0);
}

/**
 * For this transaction. A few hundred rows are looked up in tables that have many: as long as these are middling, the planner would
 * rather read them whole, for each chunk of batches again.
 */
async function preferIndexes(db: RecordsDatabase): Promise<void> {
  await sql`SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`.execute(
    db,
  );
}

/** Resolves with those that exist; they can't be deleted until the transaction ends. */
async function lockKeys(db: RecordsDatabase, keyIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ id: string }>`
    SELECT id FROM consumer_keys WHERE id = ANY (${keyIds}::text[]) ORDER BY id FOR KEY SHARE`.execute(db);
  return new Set(rows.map(({ id }) => id));
}

/** Resolves with the keys whose batch was not in yet, and with the names that they had before. */
async function addTotals(
  db: RecordsDatabase,
  batches: readonly UsageBatch[],
): Promise<ReadonlyMap<string, ListSizes>> {
  if (batches.length === 0) return new Map();
  const { rows } = await sql<ListSizes & { key_id: string }>`
    INSERT INTO usage_totals AS stored (key_id, last_batch, requests, successful, forwarded, forwarded_us)
    SELECT * FROM unnest(
      ${batches.map((batch) => batch.keyId)}::text[],
      ${batches.map((batch) => batch.id)}::bigint[],
      ${countArrays(batches.map((batch) => batch.sums.totals))}
    )
    ON CONFLICT (key_id) DO UPDATE SET last_batch = excluded.last_batch, ${ADD_EXCLUDED}
    WHERE stored.last_batch < excluded.last_batch
    RETURNING key_id, endpoints, customers`.execute(db);
  return new Map(rows.map((row) => [row.key_id, row]));
}

/**
 * Adds rows to a list, with a place of their own for as many new names of a key as `roomOf` says. Resolves with the number of names that
 * each list grew by, for the keys whose list did.
 */
async function addNames(
  db: RecordsDatabase,
  table: UsageListTable,
  rows: readonly UsageRow[],
  roomOf: (keyId: string) => number,
): Promise<ReadonlyMap<string, number>> {
  const unknown = await addToKnownRows(db, table, rows);
  const placed: UsageRow[] = [];
  const grown = new Map<string, number>();
  for (const [keyId, ofKey] of Map.groupBy(unknown, (row) => row.keyId)) {
    const names = placeNames(
      ofKey.map((row) => [row.name, row.counts]),
      roomOf(keyId),
    );
    const before = placed.length;
    for (const [name, counts] of names) placed.push({ keyId, name, counts });
    const isOtherPlaced = placed.slice(before).some((row) => row.name === OTHER);
    const newNames = placed.length - before - (isOtherPlaced ? 1 : 0);
    if (newNames > 0) grown.set(keyId, newNames);
  }
  await addRows(db, table, placed);
  return grown;
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

async function addHours(db: RecordsDatabase, batches: readonly UsageBatch[]): Promise<void> {
  const rows = batches.flatMap(({ keyId, sums }) =>
    [...sums.hours].map(([hour, counts]) => ({ keyId, hour, counts })),
  );
  if (rows.length === 0) return;
  await sql`
    INSERT INTO usage_by_hour AS stored (key_id, hour, requests, successful, forwarded, forwarded_us)
    SELECT key_id, to_timestamp(hour::double precision * 3600), requests, successful, forwarded, forwarded_us FROM unnest(
      ${rows.map((row) => row.keyId)}::text[],
      ${rows.map((row) => row.hour)}::integer[],
      ${countArrays(rows.map((row) => row.counts))}
    ) AS added (key_id, hour, requests, successful, forwarded, forwarded_us)
    ON CONFLICT (key_id, hour) DO UPDATE SET ${ADD_EXCLUDED}`.execute(db);
}

async function readLastIds(
  db: RecordsDatabase,
  batches: readonly UsageBatch[],
): Promise<ReadonlyMap<string, number>> {
  if (batches.length === 0) return new Map();
  const { rows } = await sql<{ key_id: string; last_batch: number }>`
    SELECT key_id, last_batch FROM usage_totals
    WHERE key_id = ANY (${batches.map((batch) => batch.keyId)}::text[])`.execute(db);
  return new Map(rows.map((row) => [row.key_id, row.last_batch]));
}

function endpointsOf(batches: readonly UsageBatch[]): readonly UsageRow[] {
  return batches.flatMap(({ keyId, sums }) => rowsOf(keyId, sums.endpoints));
}

function customersOf(batches: readonly UsageBatch[]): readonly UsageRow[] {
  return batches.flatMap(({ keyId, sums }) => rowsOf(keyId, sums.customers));
}

function rowsOf(keyId: string, list: ReadonlyMap<string, Counts>): readonly UsageRow[] {
  return [...list].map(([name, counts]) => ({ keyId, name, counts }));
}
