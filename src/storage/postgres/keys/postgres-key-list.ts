import { type RawBuilder, sql } from 'kysely';
import type { ConsumerKey } from '../../../keys/consumer-key.ts';
import {
  EXPIRING_WITHIN_MS,
  type KeyFilter,
  type KeyListStore,
  type KeyPosition,
  type KeySelection,
  type KeySort,
  type KeyStatus,
  type SortOrder,
} from '../../../keys/key-list.ts';
import { inTransaction } from '../in-transaction.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { keyOfRow } from './consumer-keys-table.ts';
import { selectKeys } from './key-rows.ts';

/** The list of keys in Postgres, on a server or embedded. */
export class PostgresKeyList implements KeyListStore {
  readonly #db: RecordsDatabase;
  readonly #sortedAtMost: number;

  /** Up to `sortedAtMost` keys that meet a filter are sorted. If there are more, reading an index in order soon finds a page. */
  constructor(db: RecordsDatabase, sortedAtMost = SORTED_AT_MOST) {
    this.#db = db;
    this.#sortedAtMost = sortedAtMost;
  }

  async list(selection: KeySelection, nowMs: number): Promise<readonly ConsumerKey[]> {
    // Selects the ids first, so that sorting and filtering read only the columns that they need.
    const page = sql<{ id: string }>`(${chosenIds(selection, nowMs, this.#sortedAtMost)})`.as('page');
    const direction = DIRECTIONS[selection.order];
    const rows = await this.#planned((transaction) =>
      selectKeys(transaction)
        .innerJoin(page, (join) => join.onRef('page.id', '=', 'consumer_keys.id'))
        .orderBy(sql`page.value ${direction}, page.id ${direction}`)
        .execute(),
    );
    return rows.map(keyOfRow);
  }

  async count(filter: KeyFilter, nowMs: number): Promise<number> {
    const query = sql<{ total: number }>`
      SELECT count(*) AS total FROM (${idsOf(conditionsOf(filter, nowMs))}) AS found`;
    const { rows } = await this.#planned((transaction) => query.execute(transaction));
    return rows[0]?.total ?? 0;
  }

  async ids(filter: KeyFilter, limit: number, nowMs: number): Promise<readonly string[]> {
    const query = sql<{ id: string }>`
      SELECT id FROM (${idsOf(conditionsOf(filter, nowMs))}) AS found ORDER BY id LIMIT ${limit}`;
    const { rows } = await this.#planned((transaction) => query.execute(transaction));
    return rows.map(({ id }) => id);
  }

  /**
   * Changes planner settings for a query. The defaults are for disks that seek, and for queries that take seconds: the planner would
   * read all keys for a page of 1000, and start parallel workers for the branch that is not taken.
   */
  #planned<Result>(read: (transaction: RecordsDatabase) => Promise<Result>): Promise<Result> {
    return inTransaction(this.#db, async (transaction) => {
      await sql`SELECT set_config('random_page_cost', '1.1', true),
        set_config('max_parallel_workers_per_gather', '0', true)`.execute(transaction);
      return read(transaction);
    });
  }
}

type Sql = RawBuilder<unknown>;

/** A table with a row for every key, and its column with the key's id. */
interface Source {
  readonly table: Sql;
  readonly id: Sql;
}

const KEYS: Source = { table: sql`consumer_keys AS keys`, id: sql`keys.id` };
const USAGE: Source = { table: sql`usage_totals AS usage`, id: sql`usage.key_id` };
const TEXTS: Source = { table: sql`key_search_texts AS texts`, id: sql`texts.key_id` };

/** What a key has to meet to be listed. */
interface Condition {
  readonly source: Source;
  readonly met: Sql;
  /** The same of the key with this id, without the source: where keys are read in the order of the list. Missing: `met`. */
  readonly metBy?: (id: Sql) => Sql;
}

/** The expression that a list is sorted by. An index of the source has it together with the id. */
interface SortKey {
  readonly source: Source;
  readonly value: Sql;
}

const SORT_KEYS: Readonly<Record<KeySort, SortKey>> = {
  createdAt: { source: KEYS, value: sql`keys.created_at` },
  name: { source: KEYS, value: sql`fold_case(keys.name) COLLATE "C"` },
  lastUsedAt: { source: USAGE, value: sql`coalesce(usage.last_used_at, '-infinity')` },
  expiresAt: { source: KEYS, value: sql`coalesce(keys.expires_at, 'infinity')` },
};

const DIRECTIONS: Readonly<Record<SortOrder, Sql>> = { asc: sql`ASC`, desc: sql`DESC` };

const SORTED_AT_MOST = 2500;

/**
 * The ids of a page, and their sort values. While the query runs, the number of matches decides whether to sort them or to read an index
 * in order: the planner's estimates are too rough for texts, statuses and joins, and the wrong way takes a hundred times as long.
 */
function chosenIds(selection: KeySelection, nowMs: number, sortedAtMost: number): Sql {
  const { filter, sort } = selection;
  const { source, value } = SORT_KEYS[sort];
  const conditions = conditionsOf(filter, nowMs);
  const needed = conditions.filter(({ metBy }) => metBy === undefined).map((condition) => condition.source);
  const all = sql`SELECT ${source.id} AS id, ${value} AS value FROM ${joined([source, ...needed])}`;
  if (conditions.length === 0) return pageOf({ from: all, met: [] }, selection);
  const met = conditions.map((condition) => condition.metBy?.(source.id) ?? condition.met);
  const ofFound = sql`SELECT found.id, (
      SELECT ${value} FROM ${source.table} WHERE ${source.id} = found.id
    ) AS value FROM found WHERE (SELECT hold FROM few)`;
  return sql`
    WITH found AS MATERIALIZED (${idsOf(conditions)} LIMIT ${sortedAtMost + 1}),
      few AS MATERIALIZED (SELECT count(*) <= ${sortedAtMost} AS hold FROM found)
    (${pageOf({ from: sql`SELECT id, value FROM (${ofFound}) AS sorted`, met: [] }, selection, SORTED)})
    UNION ALL
    (${pageOf({ from: all, met: [sql`NOT (SELECT hold FROM few)`, ...met] }, selection)})`;
}

const SORTED = { value: sql`value`, id: sql`id` };

function pageOf(
  { from, met }: { readonly from: Sql; readonly met: readonly Sql[] },
  { sort, order, limit, after }: KeySelection,
  { value, id } = { value: SORT_KEYS[sort].value, id: SORT_KEYS[sort].source.id },
): Sql {
  const comparison = order === 'asc' ? sql`>` : sql`<`;
  const rest =
    after === undefined ? [] : [sql`(${value}, ${id}) ${comparison} (${placeOf(after, sort)}, ${after.id})`];
  const direction = DIRECTIONS[order];
  return sql`${from} ${where([...met, ...rest])}
    ORDER BY ${value} ${direction}, ${id} ${direction} LIMIT ${limit}`;
}

/** The ids of all keys that meet the conditions, from only the tables that these need. */
function idsOf(conditions: readonly Condition[]): Sql {
  const sources = conditions.map(({ source }) => source);
  const [first = KEYS] = sources;
  return sql`SELECT ${first.id} AS id FROM ${joined([first, ...sources])} ${where(conditions.map(({ met }) => met))}`;
}

/** Joins each source once. Inner joins suffice, because every key has a row in each. */
function joined(sources: readonly [Source, ...(readonly Source[])]): Sql {
  const [first] = sources;
  const others = [...new Set(sources)].filter((source) => source !== first);
  return sql`${first.table} ${sql.join(
    others.map(({ table, id }) => sql`JOIN ${table} ON ${id} = ${first.id}`),
    sql` `,
  )}`;
}

function where(met: readonly Sql[]): Sql {
  return met.length === 0 ? sql`` : sql`WHERE ${sql.join(met, sql` AND `)}`;
}

function placeOf({ value }: KeyPosition, sort: KeySort): Sql {
  if (sort === 'name') return sql`fold_case(${value}) COLLATE "C"`;
  if (value === null)
    return sort === 'lastUsedAt' ? sql`'-infinity'::timestamptz` : sql`'infinity'::timestamptz`;
  return instant(Number(value));
}

function conditionsOf(filter: KeyFilter, nowMs: number): readonly Condition[] {
  const { text, unusedSinceMs } = filter;
  const conditions = ofKeys(filter, nowMs).map((met): Condition => ({ source: KEYS, met }));
  if (unusedSinceMs !== undefined)
    conditions.push({
      source: USAGE,
      met: sql`coalesce(usage.last_used_at, '-infinity') < ${instant(unusedSinceMs)}`,
    });
  if (text !== undefined) conditions.push(hasText(text));
  return conditions;
}

/** The trigram index finds texts with three letters or digits in a row. For others the whole table is read, which is small. */
function hasText(text: string): Condition {
  const pattern = sql`'%' || fold_case(${literal(text)}) || '%'`;
  return {
    source: TEXTS,
    met: sql`texts.content LIKE ${pattern}`,
    // A text for each key that is read: so Postgres does not find all texts first, which may be a fifth of a million.
    metBy: (id) => sql`(SELECT texts.content FROM ${TEXTS.table} WHERE ${TEXTS.id} = ${id}) LIKE ${pattern}`,
  };
}

function ofKeys(filter: KeyFilter, nowMs: number): readonly Sql[] {
  const { ids, statuses, planId, tags = [], externalId } = filter;
  const { createdFromMs, createdBeforeMs, expiresBeforeMs } = filter;
  const met: Sql[] = [];
  if (ids !== undefined) met.push(sql`keys.id = ANY (${ids}::text[])`);
  if (statuses !== undefined) met.push(isInAny(statuses, nowMs));
  if (planId !== undefined) met.push(sql`keys.plan_id = ${planId}`);
  // The second condition lets Postgres use the partial index, which leaves out keys without tags.
  if (tags.length > 0) met.push(sql`keys.tags @> ${tags}::text[] AND keys.tags <> '{}'`);
  if (externalId !== undefined) met.push(sql`keys.external_id = ${externalId}`);
  if (createdFromMs !== undefined) met.push(sql`keys.created_at >= ${instant(createdFromMs)}`);
  if (createdBeforeMs !== undefined) met.push(sql`keys.created_at < ${instant(createdBeforeMs)}`);
  if (expiresBeforeMs !== undefined)
    met.push(sql`coalesce(keys.expires_at, 'infinity') < ${instant(expiresBeforeMs)}`);
  return met;
}

function isInAny(statuses: readonly KeyStatus[], nowMs: number): Sql {
  return sql`(${sql.join(
    statuses.map((status) => isIn(status, nowMs)),
    sql` OR `,
  )})`;
}

function isIn(status: KeyStatus, nowMs: number): Sql {
  const expiresAt = sql`coalesce(keys.expires_at, 'infinity')`;
  const now = instant(nowMs);
  switch (status) {
    case 'active':
      return sql`keys.enabled AND ${expiresAt} > ${now}`;
    case 'disabled':
      return sql`NOT keys.enabled`;
    case 'expired':
      return sql`${expiresAt} <= ${now}`;
    case 'expiring':
      return sql`keys.enabled AND ${expiresAt} > ${now} AND ${expiresAt} <= ${instant(nowMs + EXPIRING_WITHIN_MS)}`;
  }
}

/** Escapes the characters that are special in a LIKE pattern. */
function literal(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}

function instant(ms: number): Sql {
  return sql`${new Date(ms)}::timestamptz`;
}
