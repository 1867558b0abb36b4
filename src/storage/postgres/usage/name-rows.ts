import { sql } from 'kysely';
import { capNames, MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../../usage/cap-names.ts';
import { addUnder, type Counts, type UsageSlice } from '../../../usage/usage-slice.ts';
import { textArray } from '../array-literals.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { UsageRows } from './usage-rows.ts';

/** The list for the names of each table, and how many names of a key it may have. */
const LISTS = {
  usage_endpoint_days: { list: 'endpoints', names: 'usage_by_endpoint', cap: MAX_ENDPOINTS },
  usage_customer_days: { list: 'customers', names: 'usage_by_customer', cap: MAX_CUSTOMERS },
} as const;

/** The tables of days by name. */
export type NameDays = keyof typeof LISTS;

/** For each name of a key, the name under which it is kept: itself or `__other__`. */
export type Places = ReadonlyMap<string, string>;

/** What is to be added to one key: at most one slice for each day and plan. */
export interface KeyAddition {
  readonly keyId: string;
  readonly slices: readonly UsageSlice[];
}

/** What is to be added to several keys. */
export interface NameAdditions {
  readonly keys: readonly KeyAddition[];
  /** How many names the list of a key has. */
  readonly sizeOf: (keyId: string) => number;
}

/** Rows by day and name. */
export interface NamedRows<Days extends NameDays> {
  readonly rows: UsageRows<Days>;
  /** The names under which those of a slice are kept; undefined: under themselves. */
  readonly placesOf: (slice: Pick<UsageSlice, 'keyId' | 'day'>) => Places | undefined;
}

/** The rows of several keys by day and endpoint or customer. Names without room in a key's list are summed under `__other__`. */
export async function nameRows<Days extends NameDays>(
  db: RecordsDatabase,
  days: Days,
  { keys, sizeOf }: NameAdditions,
): Promise<NamedRows<Days>> {
  const places = await findPlaces(db, days, { keys, sizeOf });
  const rows = new NameRows(days);
  for (const { keyId, slices } of keys) {
    for (const slice of slices) rows.add(slice, places.get(keyId));
  }
  return { rows: rows.rows, placesOf: ({ keyId }) => places.get(keyId) };
}

/** The same for deleted keys, whose lists were deleted with them: each of their days has room for as many names as a list. */
export async function nameRowsOfDeleted<Days extends NameDays>(
  db: RecordsDatabase,
  days: Days,
  keys: readonly KeyAddition[],
): Promise<NamedRows<Days>> {
  const { list, cap } = LISTS[days];
  const slices = keys.flatMap((key) => key.slices);
  const known = await findNamesOfDays(db, days, slices);
  const rows = new NameRows(days);
  const placesOfDays = new Map<string, Places>();
  for (const [keyDay, ofDay] of Map.groupBy(slices, keyDayOf)) {
    const names = known.get(keyDay) ?? new Set();
    const added = new Set(ofDay.flatMap((slice) => [...slice[list].keys()]));
    const places = capNames(added, (name) => names.has(name), cap - names.size);
    placesOfDays.set(keyDay, places);
    for (const slice of ofDay) rows.add(slice, places);
  }
  return { rows: rows.rows, placesOf: (slice) => placesOfDays.get(keyDayOf(slice)) };
}

/** Makes rows of slices. */
class NameRows<Days extends NameDays> {
  readonly rows: UsageRows<Days>;
  readonly #list: 'endpoints' | 'customers';
  /** Nearly all slices have the same day. */
  #lastDay = Number.NaN;
  #date = '';

  constructor(days: Days) {
    this.rows = new UsageRows(days);
    this.#list = LISTS[days].list;
  }

  /** Keeps each name under its place; without a place, the name stays as it is. */
  add(slice: UsageSlice, places: Places | undefined): void {
    const { keyId, planId, [this.#list]: counted } = slice;
    if (slice.day !== this.#lastDay) this.#date = dateOf(slice);
    this.#lastDay = slice.day;
    for (const [name, counts] of places === undefined ? counted : placed(counted, places)) {
      this.rows.add(counts, keyId, this.#date, planId, name);
    }
  }
}

/** Counts by the names under which they are kept. */
export function placed(counted: ReadonlyMap<string, Counts>, places: Places): ReadonlyMap<string, Counts> {
  const kept = new Map<string, Counts>();
  for (const [name, counts] of counted) addUnder(kept, places.get(name) ?? name, counts);
  return kept;
}

function dateOf({ day }: Pick<UsageSlice, 'day'>): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}

function keyDayOf(slice: Pick<UsageSlice, 'keyId' | 'day'>): string {
  return `${slice.keyId} ${dateOf(slice)}`;
}

/** The places of the names, for the keys whose lists may not have room for all of them. */
async function findPlaces(
  db: RecordsDatabase,
  days: NameDays,
  { keys, sizeOf }: NameAdditions,
): Promise<ReadonlyMap<string, Places>> {
  const { list, names, cap } = LISTS[days];
  // Most keys have room for all the names, whether they are new or not.
  const full = keys
    .filter(
      ({ keyId, slices }) => slices.reduce((size, slice) => size + slice[list].size, sizeOf(keyId)) > cap,
    )
    .map(({ keyId, slices }) => ({
      keyId,
      added: new Set(slices.flatMap((slice) => [...slice[list].keys()])),
    }));
  const known = await findNames(db, names, full);
  return new Map(
    full.map(({ keyId, added }) => {
      const isKnown = (name: string) => known.get(keyId)?.has(name) ?? false;
      return [keyId, capNames(added, isKnown, cap - sizeOf(keyId))];
    }),
  );
}

/** The added names that the keys' lists already have, by key. */
async function findNames(
  db: RecordsDatabase,
  table: string,
  lists: readonly { readonly keyId: string; readonly added: ReadonlySet<string> }[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  if (lists.length === 0) return new Map();
  const pairs = lists.flatMap(({ keyId, added }) => [...added].map((name) => ({ keyId, name })));
  const { rows } = await sql<{ key_id: string; name: string }>`
    SELECT key_id, name FROM ${sql.table(table)} JOIN unnest(
      ${textArray(pairs.map(({ keyId }) => keyId))}::text[], ${textArray(pairs.map(({ name }) => name))}::text[]
    ) AS wanted (key_id, name) USING (key_id, name)`.execute(db);
  const byKey = Map.groupBy(rows, (row) => row.key_id);
  return new Map([...byKey].map(([keyId, found]) => [keyId, new Set(found.map(({ name }) => name))]));
}

/** The names that already have a row in the days of these slices, by key and day. */
async function findNamesOfDays(
  db: RecordsDatabase,
  table: string,
  slices: readonly UsageSlice[],
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { rows } = await sql<{ key_day: string; name: string }>`
    SELECT DISTINCT key_id || ' ' || day AS key_day, name FROM ${sql.table(table)} JOIN unnest(
      ${slices.map(({ keyId }) => keyId)}::text[], ${slices.map(dateOf)}::date[]
    ) AS wanted (key_id, day) USING (key_id, day)
    WHERE name <> ${OTHER}`.execute(db);
  const byDay = Map.groupBy(rows, (row) => row.key_day);
  return new Map([...byDay].map(([keyDay, found]) => [keyDay, new Set(found.map(({ name }) => name))]));
}
