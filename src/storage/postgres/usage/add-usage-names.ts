import { sql } from 'kysely';
import { placeNames } from '../../../usage/place-names.ts';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../../usage/usage-names.ts';
import type { UsageSlice } from '../../../usage/usage-slice.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { addDays, summed } from './usage-rows.ts';

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

/**
 * Adds the endpoints or the customers of different keys to their lists, which have `sizeOf` names, and to their days. Resolves with by how
 * many names the lists grew, for the keys whose list did.
 */
export async function addNames(
  db: RecordsDatabase,
  list: keyof typeof LISTS,
  keys: readonly KeyAddition[],
  sizeOf: (keyId: string) => number,
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
    slices.flatMap(({ day, planId, [list]: counted }) => {
      const date = new Date(day * 86_400_000).toISOString().slice(0, 10);
      return [...counted].map(([name, counts]) => ({
        key: [keyId, date, planId, places.get(keyId)?.get(name) ?? name],
        counts,
      }));
    }),
  );
  const grown = new Map<string, number>();
  for (const { key_id: keyId, name } of await addDays(db, { days, names }, summed(rows))) {
    if (name !== OTHER) grown.set(keyId, (grown.get(keyId) ?? 0) + 1);
  }
  return grown;
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
