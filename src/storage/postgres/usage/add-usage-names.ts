import { sql } from 'kysely';
import { placeNames } from '../../../usage/place-names.ts';
import { OTHER } from '../../../usage/usage-names.ts';
import { addUnder, type Counts } from '../../../usage/usage-slice.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { addListRows } from './usage-rows.ts';

/** What is to be added to one list of a key, in the order in which the names came. */
export interface NamedList {
  readonly keyId: string;
  readonly names: ReadonlyMap<string, Counts>;
}

/** Where the names of some keys went. */
export interface PlacedNames {
  /** By how many names the lists grew, for the keys whose list did. */
  readonly grown: ReadonlyMap<string, number>;
  /** The name itself, or `__other__`. */
  placeOf(keyId: string, name: string): string;
}

/** Adds to the lists of different keys, which have `sizeOf` names and room for `cap` of them. */
export async function addNames(
  db: RecordsDatabase,
  table: 'usage_by_endpoint' | 'usage_by_customer',
  lists: readonly NamedList[],
  { sizeOf, cap }: { readonly sizeOf: (keyId: string) => number; readonly cap: number },
): Promise<PlacedNames> {
  // Most keys have room for all the names, whether they are new or not.
  const full = lists.filter(({ keyId, names }) => sizeOf(keyId) + names.size > cap);
  const known = await findNames(db, table, full);
  const places = new Map(
    full.map(({ keyId, names }) => {
      const isKnown = (name: string) => known.get(keyId)?.has(name) ?? false;
      return [keyId, placeNames(names.keys(), isKnown, cap - sizeOf(keyId))];
    }),
  );
  const placeOf = (keyId: string, name: string) => places.get(keyId)?.get(name) ?? name;
  const rows = lists.flatMap(({ keyId, names }) => {
    const placed = new Map<string, Counts>();
    for (const [name, counts] of names) addUnder(placed, placeOf(keyId, name), counts);
    return [...placed].map(([name, counts]) => ({ key: [keyId, name], counts }));
  });
  const grown = new Map<string, number>();
  for (const row of await addListRows(db, table, rows)) {
    if (row.name !== OTHER) grown.set(row.key_id, (grown.get(row.key_id) ?? 0) + 1);
  }
  return { grown, placeOf };
}

/** Those of the names that the keys' lists have. */
async function findNames(
  db: RecordsDatabase,
  table: string,
  lists: readonly NamedList[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  if (lists.length === 0) return new Map();
  const pairs = lists.flatMap(({ keyId, names }) => [...names.keys()].map((name) => [keyId, name]));
  const { rows } = await sql<{ key_id: string; name: string }>`
    SELECT key_id, name FROM ${sql.table(table)} JOIN unnest(
      ${pairs.map(([keyId]) => keyId)}::text[], ${pairs.map(([, name]) => name)}::text[]
    ) AS asked (key_id, name) USING (key_id, name)`.execute(db);
  const byKey = Map.groupBy(rows, (row) => row.key_id);
  return new Map([...byKey].map(([keyId, found]) => [keyId, new Set(found.map(({ name }) => name))]));
}
