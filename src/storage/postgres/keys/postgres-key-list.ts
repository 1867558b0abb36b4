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
import type { RecordsDatabase } from '../records-database.ts';
import { keyOfRow } from './consumer-keys-table.ts';
import { selectKeys } from './key-rows.ts';

/** The list of keys in Postgres, on a server or embedded. */
export class PostgresKeyList implements KeyListStore {
  readonly #db: RecordsDatabase;
  readonly #sortedAtMost: number;

  /** Up to `sortedAtMost` keys that meet a filter are sorted. Of more, those of a page are soon found in the order of an index. */
  constructor(db: RecordsDatabase, sortedAtMost = SORTED_AT_MOST) {
    this.#db = db;
    this.#sortedAtMost = sortedAtMost;
  }

  async list(selection: KeySelection, nowMs: number): Promise<readonly ConsumerKey[]> {
    // The ids first: then neither sorting nor leaving out touches more of a key than it needs.
    const page = sql<{ id: string }>`(${chosenIds(selection, nowMs, this.#sortedAtMost)})`.as('page');
    const direction = DIRECTIONS[selection.order];
    const rows = await selectKeys(this.#db)
      .innerJoin(page, (join) => join.onRef('page.id', '=', 'consumer_keys.id'))
      .orderBy(sql`page.value ${direction}, page.id ${direction}`)
      .execute();
    return rows.map(keyOfRow);
  }

  async count(filter: KeyFilter, nowMs: number): Promise<number> {
    const { rows } = await sql<{ total: number }>`
      SELECT count(*) AS total FROM (${idsOf(filter, nowMs)}) AS found`.execute(this.#db);
    return rows[0]?.total ?? 0;
  }
}

type Sql = RawBuilder<unknown>;

/** By what a list is sorted, and the id beside it, as their index has them. */
interface SortKey {
  readonly value: Sql;
  readonly id: Sql;
}

const SORT_KEYS: Readonly<Record<KeySort, SortKey>> = {
  createdAt: { value: sql`keys.created_at`, id: sql`keys.id` },
  name: { value: sql`fold_case(keys.name) COLLATE "C"`, id: sql`keys.id` },
  lastUsedAt: { value: sql`coalesce(usage.last_used_at, '-infinity')`, id: sql`usage.key_id` },
  expiresAt: { value: sql`coalesce(keys.expires_at, 'infinity')`, id: sql`keys.id` },
};

const DIRECTIONS: Readonly<Record<SortOrder, Sql>> = { asc: sql`ASC`, desc: sql`DESC` };

const KEYS = sql`consumer_keys AS keys`;
/** What a search looks at, as its index has it. */
const SEARCH_TEXT = sql`fold_case(
  keys.name || chr(10) || coalesce(keys.external_id, '') || chr(10) || keys.id || chr(10) || coalesce(keys.secret_hint, '')
) COLLATE "C"`;
const USAGE = sql`usage_totals AS usage`;
/** Every key has its usage. */
const BOTH = sql`${KEYS} JOIN ${USAGE} ON usage.key_id = keys.id`;

const SORTED_AT_MOST = 2500;

/**
 * The ids of a page, and by what it is sorted. Which of the two ways to go is decided by the keys themselves, while the query runs: the
 * planner's estimates are too rough for texts, states and joins, and the wrong way takes a hundred times as long.
 */
function chosenIds(selection: KeySelection, nowMs: number, sortedAtMost: number): Sql {
  const { filter, sort } = selection;
  const { value, id } = SORT_KEYS[sort];
  const isByUse = sort === 'lastUsedAt';
  const met = [...keyConditions(filter, nowMs), ...usageConditions(filter)];
  const all = sql`SELECT ${id} AS id, ${value} AS value FROM ${isByUse || filter.unusedSinceMs !== undefined ? BOTH : KEYS}`;
  if (met.length === 0) return pageOf(all, met, selection);
  const ofFound = sql`SELECT found.id, (
      SELECT ${value} FROM ${isByUse ? USAGE : KEYS} WHERE ${id} = found.id
    ) AS value FROM found WHERE (SELECT hold FROM few)`;
  return sql`
    WITH found AS MATERIALIZED (${idsOf(filter, nowMs)} LIMIT ${sortedAtMost + 1}),
      few AS MATERIALIZED (SELECT count(*) <= ${sortedAtMost} AS hold FROM found)
    (${pageOf(sql`SELECT id, value FROM (${ofFound}) AS sorted`, [], selection, SORTED)})
    UNION ALL
    (${pageOf(all, [sql`NOT (SELECT hold FROM few)`, ...met], selection)})`;
}

const SORTED: SortKey = { value: sql`value`, id: sql`id` };

function pageOf(
  from: Sql,
  met: readonly Sql[],
  { sort, order, limit, after }: KeySelection,
  { value, id }: SortKey = SORT_KEYS[sort],
): Sql {
  const comparison = order === 'asc' ? sql`>` : sql`<`;
  const rest =
    after === undefined ? [] : [sql`(${value}, ${id}) ${comparison} (${placeOf(after, sort)}, ${after.id})`];
  const direction = DIRECTIONS[order];
  return sql`${from} ${where([...met, ...rest])}
    ORDER BY ${value} ${direction}, ${id} ${direction} LIMIT ${limit}`;
}

/** The ids of all that meet a filter, from as few tables as can tell. */
function idsOf(filter: KeyFilter, nowMs: number): Sql {
  const ofKeys = keyConditions(filter, nowMs);
  const ofUsage = usageConditions(filter);
  if (ofUsage.length === 0) return sql`SELECT keys.id FROM ${KEYS} ${where(ofKeys)}`;
  if (ofKeys.length === 0) return sql`SELECT usage.key_id AS id FROM ${USAGE} ${where(ofUsage)}`;
  return sql`SELECT keys.id FROM ${BOTH} ${where([...ofKeys, ...ofUsage])}`;
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

function usageConditions({ unusedSinceMs }: KeyFilter): readonly Sql[] {
  if (unusedSinceMs === undefined) return [];
  return [sql`coalesce(usage.last_used_at, '-infinity') < ${instant(unusedSinceMs)}`];
}

function keyConditions(filter: KeyFilter, nowMs: number): readonly Sql[] {
  const { text, statuses, planId, tags = [], externalId } = filter;
  const { createdFromMs, createdBeforeMs, expiresBeforeMs } = filter;
  const met: Sql[] = [];
  if (text !== undefined) met.push(sql`${SEARCH_TEXT} LIKE '%' || fold_case(${literal(text)}) || '%'`);
  if (statuses !== undefined) met.push(isInAny(statuses, nowMs));
  if (planId !== undefined) met.push(sql`keys.plan_id = ${planId}`);
  // The second condition lets the index be used, which leaves out keys without tags.
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

/** In a pattern, these characters stand for others. */
function literal(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}

function instant(ms: number): Sql {
  return sql`${new Date(ms)}::timestamptz`;
}
