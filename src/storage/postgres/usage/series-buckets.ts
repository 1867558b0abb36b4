import { type RawBuilder, sql } from 'kysely';
import { MAX_CUSTOMERS, MAX_ENDPOINTS, OTHER } from '../../../usage/cap-names.ts';
import {
  type Grouping,
  isOfSomeKeys,
  type PendingRow,
  type SeriesFilter,
  type SeriesSelection,
} from '../../../usage/series/series-store.ts';
import { hoursOfDays, type QuartersAndHours, type TimeSpan } from '../../../usage/series/time-buckets.ts';
import { shardOf } from '../../../usage/shards.ts';

/** The table or query that rows are read from, and its time column. */
interface Source {
  readonly from: RawBuilder<unknown>;
  readonly time: string;
  readonly timeType: 'timestamptz' | 'date';
}

const HOURS = hours('usage_hours');
/** The requests of each key by day, and how many of them came before 06:00, 12:00 and 18:00 UTC. */
const KEY_DAYS = days('usage_key_days');
/** The hours of all keys together. */
const TOTAL_HOURS = hours('usage_total_hours');
const ENDPOINT_DAYS = days('usage_endpoint_days');
const CUSTOMER_DAYS = days('usage_customer_days');

function hours(table: string): Source {
  return { from: sql.table(table), time: 'hour', timeType: 'timestamptz' };
}

function days(table: string): Source {
  return { from: sql.table(table), time: 'day', timeType: 'date' };
}

const GROUP_COLUMNS: Readonly<Record<Grouping, string>> = {
  key: 'key_id',
  rateLimit: 'plan_id',
  endpoint: 'name',
  customer: 'name',
};

/**
 * A query for the stored rows of a selection, summed by bucket and group: `start`, `group1`, `group2` and the counts. If rows come from
 * two tables, a bucket may have a row of each.
 *
 * Counts are summed as double precision: exact up to 2^53, which ours do not exceed, and three times as fast as `sum(bigint)`, which
 * computes with numeric.
 */
export function bucketSums(selection: SeriesSelection): RawBuilder<unknown> {
  const { span, filter, pending } = selection;
  const stored = storedSums(selection);
  if (pending.length === 0 || filter.keyId === undefined) return stored;
  const from = sql`(${pendingTable(filter.keyId, selection)}) AS pending`;
  const added: Source = { from, time: 'at', timeType: 'timestamptz' };
  return sql`${stored} UNION ALL ${sumsOf(added, selection, span)}`;
}

function storedSums(selection: SeriesSelection): RawBuilder<unknown> {
  const { source, span, hoursSinceMs = span.fromMs } = selection;
  switch (source) {
    case 'endpointDays':
      return sumsOf(ENDPOINT_DAYS, selection, span);
    case 'customerDays':
      return sumsOf(CUSTOMER_DAYS, selection, span);
    case 'totalHours':
      return sumsOf(TOTAL_HOURS, selection, span);
    case 'hours': {
      const sinceMs = Math.max(hoursSinceMs, span.fromMs);
      const kept = sumsOf(HOURS, selection, { ...span, fromMs: sinceMs });
      if (sinceMs === span.fromMs) return kept;
      const older = { ...span, toMs: Math.min(sinceMs, span.toMs) };
      return sql`${sumsOf(ENDPOINT_DAYS, selection, older)} UNION ALL ${kept}`;
    }
  }
}

/** The queries of which a series of the largest groups of all keys is made. */
export interface RankedSums {
  /** `group1` and `group2` of the groups with the most requests. */
  readonly largest: RawBuilder<unknown>;
  /** The sums of these groups, as those of `bucketSums`. Needs `largest` as a query of that name in the same `WITH`. */
  readonly named: RawBuilder<unknown>;
  /** The sums of all groups together. */
  readonly all: RawBuilder<unknown>;
}

/**
 * Reads the largest of many keys without summing all counts of each key. The keys are ranked by their requests alone, from quarters of
 * days where possible. The sum of all other keys is the difference to the hours of all keys together. Undefined for other series.
 */
export function rankedSums(selection: SeriesSelection): RankedSums | undefined {
  const { source, span, quartersAndHours, groupBy, filter, top } = selection;
  const isOfAllKeys = source === 'hours' && !isOfSomeKeys(filter);
  if (top === undefined || !isOfAllKeys || quartersAndHours === undefined) return undefined;
  const columns = sql.join(groupBy.map((grouping) => sql.ref(GROUP_COLUMNS[grouping])));
  const groups = sql.join(groupBy.map((_, index) => sql.ref(`group${index + 1}`)));
  return {
    largest: sql`
      SELECT group1, group2 FROM (${requestsOfGroups(quartersAndHours, selection)}) AS parts
      GROUP BY 1, 2 ORDER BY sum(requests) DESC, 1, 2 LIMIT ${top}`,
    named: sumsOf(HOURS, selection, {
      ...span,
      only: sql`AND (${columns}) IN (SELECT ${groups} FROM largest)`,
    }),
    all: sumsOf(TOTAL_HOURS, { ...selection, groupBy: [] }, span),
  };
}

/**
 * A query for `group1`, `group2` and `requests`. These are negative where hours are subtracted from days, so only their sums have a
 * meaning. Each part is summed separately: over several tables Postgres can't estimate the number of groups, and would sort all rows.
 */
function requestsOfGroups(
  { quarters, added, subtracted }: QuartersAndHours,
  { groupBy, filter }: SeriesSelection,
): RawBuilder<unknown> {
  const sumsIn = (source: Source, span: TimeSpan, requests: RawBuilder<unknown>) => sql`
    SELECT ${groupColumns(groupBy)}, sum((${requests})::float8) AS requests FROM ${source.from}
    WHERE ${during(source, span)} ${meeting(filter)} GROUP BY 1, 2`;
  const parts = [
    ...(quarters === undefined ? [] : hoursOfDays(quarters)).map(({ days, fromHour, toHour }) =>
      sumsIn(KEY_DAYS, days, sql`${requestsBefore(toHour)} - ${requestsBefore(fromHour)}`),
    ),
    ...added.map((span) => sumsIn(HOURS, span, sql`requests`)),
    ...subtracted.map((span) => sumsIn(HOURS, span, sql`-requests`)),
  ];
  return sql.join(parts, sql` UNION ALL `);
}

/** The requests of a day before one of the hours 0, 6, 12, 18 and 24. */
function requestsBefore(hour: number): RawBuilder<unknown> {
  if (hour === 0) return sql`0`;
  return sql.ref(hour === 24 ? 'requests' : `requests_before_${hour}`);
}

function groupColumns(groupBy: readonly Grouping[]): RawBuilder<unknown> {
  const [group1, group2] = groupBy.map((grouping) => sql.ref(GROUP_COLUMNS[grouping]));
  return sql`${group1 ?? sql`''`} AS group1, ${group2 ?? sql`''`} AS group2`;
}

interface Rows extends TimeSpan {
  /** A further condition on the rows of the span, appended to `WHERE …`. */
  readonly only?: RawBuilder<unknown>;
}

function sumsOf(source: Source, selection: SeriesSelection, rows: Rows): RawBuilder<unknown> {
  return sql`
    SELECT ${bucketOf(source, selection)} AS start, ${groupColumns(selection.groupBy)},
      sum(requests::float8) AS requests, sum(successful::float8) AS successful,
      sum(forwarded::float8) AS forwarded, sum(forwarded_us::float8) AS "forwardedUs",
      sum(rate_limited::float8) AS "rateLimited", sum(client_errors::float8) AS "clientErrors",
      sum(server_errors::float8) AS "serverErrors", sum(shadow_limited::float8) AS "shadowLimited"
    FROM ${source.from}
    WHERE ${during(source, rows)} ${meeting(selection.filter)} ${rows.only ?? sql``}
    GROUP BY 1, 2, 3`;
}

/** The condition is on the bare column, so that Postgres prunes partitions and uses the index. */
function during({ time, timeType }: Source, { fromMs, toMs }: TimeSpan): RawBuilder<unknown> {
  const type = sql.raw(timeType);
  const [from, to] = [fromMs, toMs].map((ms) => {
    const instant = new Date(ms).toISOString();
    return timeType === 'date' ? instant.slice(0, 'YYYY-MM-DD'.length) : instant;
  });
  return sql`${sql.ref(time)} >= ${from}::${type} AND ${sql.ref(time)} < ${to}::${type}`;
}

/** The first instant of the bucket that a row belongs to. */
function bucketOf(
  { time, timeType }: Source,
  { bucketStarts, interval }: SeriesSelection,
): RawBuilder<unknown> {
  const instant = timeType === 'date' ? sql`(${sql.ref(time)}::timestamp AT TIME ZONE 'UTC')` : sql.ref(time);
  if (interval === 'hour') return instant;
  const starts = bucketStarts.map((start) => new Date(start).toISOString());
  if (starts.length === 1) return sql`${starts[0]}::timestamptz`;
  return sql`(${starts}::timestamptz[])[width_bucket(${instant}, ${starts}::timestamptz[])]`;
}

function meeting(filter: SeriesFilter): RawBuilder<unknown> {
  const { keyId, keyIds, planId, tag, onlyTags = [], externalId } = filter;
  const tags = tag === undefined ? onlyTags : [tag, ...onlyTags];
  return sql`
    ${keyId === undefined ? sql`` : sql`AND key_id = ${keyId}`}
    ${keyIds === undefined ? sql`` : sql`AND key_id = ANY(${keyIds}::text[])`}
    ${planId === undefined ? sql`` : sql`AND plan_id = ${planId}`}
    ${tags.length === 0 ? sql`` : sql`AND key_id IN (SELECT id FROM consumer_keys WHERE tags @> ${tags}::text[] AND tags <> '{}')`}
    ${externalId === undefined ? sql`` : sql`AND key_id IN (SELECT id FROM consumer_keys WHERE external_id = ${externalId})`}`;
}

/**
 * A key's pending counts in the shape of the stored rows, without those that the history has. To be part of the statement that reads the
 * stored rows: in one snapshot, each count is either stored or pending.
 */
function pendingTable(keyId: string, { source, pending }: SeriesSelection): RawBuilder<unknown> {
  const each = (column: (row: PendingRow) => string | number) => pending.map(column);
  return sql`
    SELECT ${keyId}::text AS key_id, at, ${nameIn(source, keyId)} AS name, plan_id,
      requests, successful, forwarded, forwarded_us, rate_limited, client_errors, server_errors, shadow_limited
    FROM unnest(
      ${each((row) => row.source)}::text[], ${each((row) => row.batchId)}::bigint[],
      ${each((row) => new Date(row.atMs).toISOString())}::timestamptz[],
      ${each((row) => row.planId)}::text[], ${each((row) => row.name)}::text[],
      ${each((row) => row.counts.requests)}::bigint[], ${each((row) => row.counts.successful)}::bigint[],
      ${each((row) => row.counts.forwarded)}::bigint[], ${each((row) => row.counts.forwardedUs)}::bigint[],
      ${each((row) => row.counts.rateLimited)}::bigint[], ${each((row) => row.counts.clientErrors)}::bigint[],
      ${each((row) => row.counts.serverErrors)}::bigint[], ${each((row) => row.counts.shadowLimited)}::bigint[]
    ) AS pending (source, batch, at, plan_id, name,
      requests, successful, forwarded, forwarded_us, rate_limited, client_errors, server_errors, shadow_limited)
    WHERE batch > coalesce(
      (SELECT last_batch FROM usage_shards WHERE shard = ${shardOf(keyId)} AND usage_shards.source = pending.source), 0)`;
}

/** A new name for which the key's list has no place left will be summed under `__other__`. */
function nameIn(source: SeriesSelection['source'], keyId: string): RawBuilder<unknown> {
  const list = source === 'endpointDays' ? 'usage_by_endpoint' : 'usage_by_customer';
  const [count, most] =
    source === 'endpointDays' ? ['endpoints', MAX_ENDPOINTS] : ['customers', MAX_CUSTOMERS];
  if (source === 'hours' || source === 'totalHours') return sql`name`;
  return sql`CASE
    WHEN EXISTS (SELECT 1 FROM ${sql.table(list)} AS list WHERE list.key_id = ${keyId} AND list.name = pending.name)
      OR coalesce((SELECT ${sql.ref(count)} FROM usage_totals WHERE key_id = ${keyId}), 0) < ${most}
    THEN name ELSE ${OTHER} COLLATE "C" END`;
}
