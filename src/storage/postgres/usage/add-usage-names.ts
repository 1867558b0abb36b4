import { sql } from 'kysely';
import { placeNames } from '../../../usage/place-names.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../../usage/usage-names.ts';
import type { UsageSlice } from '../../../usage/usage-slice.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { addDays, addOverTime, summed, type UsageRow } from './usage-rows.ts';

/** Where names go, and for how many of a key there is room. */
const LISTS = {
  endpoints: { days: 'usage_endpoint_days', names: 'usage_by_endpoint', cap: MAX_ENDPOINTS },
  customers: { days: 'usage_customer_days', names: 'usage_by_customer', cap: MAX_CUSTOMERS },
} as const;

/** What is to be added to one key. */
export interface KeyAddition {
  readonly keyId: string;
  readonly slices: readonly UsageSlice[];
}

/** What is to be added to different keys. */
export interface NameAdditions {
  readonly keys: readonly KeyAddition[];
  /** How many names the list of a key has. */
  readonly sizeOf: (keyId: string) => number;
}

/**
 * Adds the endpoints or the customers of different keys to their lists, which have `sizeOf` names, and to their days. Resolves with by how
 * many names the lists grew, for the keys whose list did.
 */
export async function addNames(
  db: RecordsDatabase,
  list: keyof typeof LISTS,
  { keys, sizeOf }: NameAdditions,
): Promise<ReadonlyMap<string, number>> {
  const { days, names, cap } = LISTS[list];
  // Most keys have room for all the names, whether they are new or not.
  const full = keys
    .map(({ keyId, slices }) => ({
      keyId,
      added: new Set(slices.flatMap((slice) => [...slice[list].keys()])),
    }))
    .filter(({ keyId, added }) => sizeOf(keyId) + added.size > cap);
  const known = await findNames(db, names, full);
  const places = new Map(
    full.map(({ keyId, added }) => {
      const isKnown = (name: string) => known.get(keyId)?.has(name) ?? false;
      return [keyId, placeNames(added, isKnown, cap - sizeOf(keyId))];
    }),
  );
  const rows = keys.flatMap(({ keyId, slices }) =>
    slices.flatMap((slice) => dayRows(slice, list, places.get(keyId))),
  );
  const grown = new Map<string, number>();
  for (const { key_id: keyId, name } of await addDays(db, { days, names }, summed(rows))) {
    if (name !== OTHER) grown.set(keyId, (grown.get(keyId) ?? 0) + 1);
  }
  return grown;
}

/** The same for keys that were deleted, whose lists went with them: there is room for as many names in each day. */
export async function addNamesOfDeleted(
  db: RecordsDatabase,
  list: keyof typeof LISTS,
  slices: readonly UsageSlice[],
): Promise<void> {
  const { days, cap } = LISTS[list];
  const known = await findNamesOfDays(db, days, slices);
  const rows = [...Map.groupBy(slices, keyDayOf)].flatMap(([keyDay, ofDay]) => {
    const names = known.get(keyDay) ?? new Set();
    const added = new Set(ofDay.flatMap((slice) => [...slice[list].keys()]));
    const places = placeNames(added, (name) => names.has(name), cap - names.size);
    return ofDay.flatMap((slice) => dayRows(slice, list, places));
  });
  await addOverTime(db, days, summed(rows));
}

/** A slice's names are kept under the places that they have, else as they are. */
function dayRows(
  slice: UsageSlice,
  list: keyof typeof LISTS,
  places: ReadonlyMap<string, string> | undefined,
): readonly UsageRow[] {
  const { keyId, planId, [list]: counted } = slice;
  const date = dateOf(slice);
  return [...counted].map(([name, counts]) => ({
    key: [keyId, date, planId, places?.get(name) ?? name],
    counts,
  }));
}

function dateOf({ day }: UsageSlice): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}

function keyDayOf(slice: UsageSlice): string {
  return `${slice.keyId} ${dateOf(slice)}`;
}

/** Those of the names that the keys' lists have. */
async function findNames(
  db: RecordsDatabase,
  table: string,
  lists: readonly { readonly keyId: string; readonly added: ReadonlySet<string> }[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  if (lists.length === 0) return new Map();
  const pairs = lists.flatMap(({ keyId, added }) => [...added].map((name) => [keyId, name]));
  const { rows } = await sql<{ key_id: string; name: string }>`
    SELECT key_id, name FROM ${sql.table(table)} JOIN unnest(
      ${pairs.map(([keyId]) => keyId)}::text[], ${pairs.map(([, name]) => name)}::text[]
    ) AS asked (key_id, name) USING (key_id, name)`.execute(db);
  const byKey = Map.groupBy(rows, (row) => row.key_id);
  return new Map([...byKey].map(([keyId, found]) => [keyId, new Set(found.map(({ name }) => name))]));
}

/** The names that have a row of their own in the days of slices, by key and day. */
async function findNamesOfDays(
  db: RecordsDatabase,
  table: string,
  slices: readonly UsageSlice[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  if (slices.length === 0) return new Map();
  const { rows } = await sql<{ key_day: string; name: string }>`
    SELECT DISTINCT key_id || ' ' || day AS key_day, name FROM ${sql.table(table)} JOIN unnest(
      ${slices.map(({ keyId }) => keyId)}::text[], ${slices.map(dateOf)}::date[]
    ) AS asked (key_id, day) USING (key_id, day)
    WHERE name <> ${OTHER}`.execute(db);
  const byDay = Map.groupBy(rows, (row) => row.key_day);
  return new Map([...byDay].map(([keyDay, found]) => [keyDay, new Set(found.map(({ name }) => name))]));
}
