import { type RawBuilder, sql } from 'kysely';
import type { PreviewedKey, PreviewRequest } from '../../../plans/preview/plan-preview.ts';
import { PREVIEW_HOURS, type PreviewedLimit } from '../../../plans/preview/preview-limits.ts';

const DAY_HOURS = 24;

/** All keys together. */
export interface PreviewRow {
  readonly requests: number;
  readonly was: number;
  readonly would: number;
  readonly keys: number;
  readonly keys_were: number;
  readonly keys_would: number;
  readonly by_limit: readonly number[];
  readonly worst: readonly PreviewedKey[] | null;
}

interface Column {
  readonly limit: PreviewedLimit;
  readonly name: RawBuilder<unknown>;
  readonly cap: RawBuilder<unknown>;
}

/**
 * A query for one row. It reads only `usage_key_days`, whose rows have the requests of each hour, and so needs no sum of 24 rows a day.
 * Counts are summed as double precision, which is exact up to 2^53 and faster than `sum(bigint)`, which computes with numeric.
 */
export function previewQuery(request: PreviewRequest): RawBuilder<PreviewRow> {
  const all: readonly Column[] = request.limits.map((limit, index) => ({
    limit,
    name: sql.raw(`over_${index}`),
    cap: sql.raw(`cap_${index}`),
  }));
  const withinDay = all.filter(({ limit }) => limit.bucketHours < DAY_HOURS);
  const byDays = all.filter(({ limit }) => limit.bucketHours >= DAY_HOURS);
  const names = all.map(({ name }) => name);
  return sql<PreviewRow>`
    WITH ${boundKeys(request, all)}, ${usedByKeys(request, withinDay)}
    ${byDays.length === 0 ? sql`` : sql`, ${daySums(request, byDays)}`}
    ${each(byDays, (column) => overDays(column, baseDays(byDays)))},
    keys AS MATERIALIZED (
      SELECT bound.id, bound.name, coalesce(used.requests, 0)::float8 AS requests, coalesce(used.was, 0)::float8 AS was,
        ${most(names)} AS would
        ${each(names, (name) => sql`, coalesce(${name}, 0)::float8 AS ${name}`)}
      FROM bound LEFT JOIN used ON used.key_id = bound.id
      ${each(byDays, ({ name }) => sql`LEFT JOIN of_${name} ON of_${name}.key_id = bound.id`)}
    )
    ${summaryOf(names, request.worst)}`;
}

/** The keys that the plan applies to, with what each may use. */
function boundKeys(
  { planId, isDefault, onlyTags, toMs }: PreviewRequest,
  all: readonly Column[],
): RawBuilder<unknown> {
  return sql`
    bound AS MATERIALIZED (
      SELECT id, name ${each(all, ({ limit, cap }) => sql`, ${capOf(limit, toMs)} AS ${cap}`)}
      FROM consumer_keys
      WHERE (plan_id = ${planId} OR (${isDefault} AND plan_id IS NULL)) AND tags @> ${onlyTags}::text[]
    )`;
}

/** What a key may use in a bucket: by its override while that holds. */
function capOf({ limitId, limit, windowsInBucket }: PreviewedLimit, nowMs: number): RawBuilder<unknown> {
  const override = sql`overrides -> ${limitId}::text`;
  return sql`(CASE WHEN (${override} ->> 'limit') IS NOT NULL
      AND coalesce((${override} ->> 'untilMs')::float8 > ${nowMs}, true)
    THEN (${override} ->> 'limit')::bigint ELSE ${limit}::bigint END) * ${windowsInBucket}::bigint`;
}

/** What each key used, and what of it was beyond each limit of less than a day. The parts of a day under two plans are compared one by one. */
function usedByKeys(request: PreviewRequest, withinDay: readonly Column[]): RawBuilder<unknown> {
  return sql`
    used AS MATERIALIZED (
      SELECT key_id, sum(requests::float8) AS requests, sum(rate_limited::float8) AS was
        ${each(withinDay, (column) => sql`, sum(${overOfDay(column)}::float8) AS ${column.name}`)}
      ${daysOfBound(request)}
      GROUP BY key_id
    )`;
}

function overOfDay({ limit, cap }: Column): RawBuilder<unknown> {
  const buckets = Array.from({ length: Math.ceil(DAY_HOURS / limit.bucketHours) }, (_, bucket) =>
    sumOfHours(bucket * limit.bucketHours, limit.bucketHours),
  );
  const over = buckets.map((requests) => sql`greatest(${requests} - ${cap}, 0)`);
  // Most days are below the limit as a whole.
  return sql`(CASE WHEN requests > ${cap} THEN ${sql.join(over, sql` + `)} ELSE 0 END)`;
}

function sumOfHours(from: number, hours: number): RawBuilder<unknown> {
  const columns = Array.from({ length: Math.min(hours, DAY_HOURS - from) }, (_, index) =>
    sql.raw(`requests_${from + index}`),
  );
  return sql`(${sql.join(columns, sql` + `)})`;
}

/** The requests of each key in the largest number of days that divides all limits. */
function daySums(request: PreviewRequest, byDays: readonly Column[]): RawBuilder<unknown> {
  return sql`
    day_sums AS MATERIALIZED (
      SELECT key_id, (day - ${dayOf(request.fromMs)}::date) / ${baseDays(byDays)}::int AS bucket, sum(requests::float8) AS requests
      ${daysOfBound(request)}
      GROUP BY 1, 2
    )`;
}

function baseDays(byDays: readonly Column[]): number {
  return byDays.map(({ limit }) => limit.bucketHours).reduce(commonDivisor, PREVIEW_HOURS) / DAY_HOURS;
}

/** What each key used beyond a limit of days. */
function overDays({ limit, name, cap }: Column, base: number): RawBuilder<unknown> {
  return sql`, of_${name} AS MATERIALIZED (
      SELECT key_id, sum(greatest(requests - ${cap}, 0)) AS ${name}
      FROM (
        SELECT key_id, sum(requests) AS requests FROM day_sums GROUP BY key_id, bucket / ${limit.bucketHours / DAY_HOURS / base}::int
      ) AS buckets JOIN bound ON bound.id = key_id
      WHERE requests > ${cap}
      GROUP BY key_id
    )`;
}

function daysOfBound({ fromMs, toMs }: PreviewRequest): RawBuilder<unknown> {
  return sql`FROM usage_key_days JOIN bound ON bound.id = key_id
      WHERE day >= ${dayOf(fromMs)}::date AND day <= ${dayOf(toMs)}::date`;
}

/** One row of all keys. */
function summaryOf(names: readonly RawBuilder<unknown>[], worst: number): RawBuilder<unknown> {
  const byLimit = names.map((name) => sql`coalesce(sum(${name}), 0)::float8`);
  return sql`
    SELECT coalesce(sum(requests), 0)::float8 AS requests, coalesce(sum(was), 0)::float8 AS was,
      coalesce(sum(would), 0)::float8 AS would, count(*)::float8 AS keys,
      (count(*) FILTER (WHERE was > 0))::float8 AS keys_were,
      (count(*) FILTER (WHERE would > 0))::float8 AS keys_would,
      array[${byLimit.length === 0 ? sql`` : sql.join(byLimit)}]::float8[] AS by_limit,
      (
        SELECT json_agg(json_build_object('keyId', id, 'name', name, 'requests', requests, 'wasLimited', was,
          'wouldBeLimited', would) ORDER BY would DESC, id)
        FROM (SELECT * FROM keys WHERE would > 0 ORDER BY would DESC, id LIMIT ${worst}) AS largest
      ) AS worst
    FROM keys`;
}

/** The limits of a key reject the same requests more often than not: the sum would count them twice. */
function most(names: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return sql`greatest(${sql.join([sql`0::float8`, ...names])})::float8`;
}

function each<Item>(items: readonly Item[], part: (item: Item) => RawBuilder<unknown>): RawBuilder<unknown> {
  return items.length === 0 ? sql`` : sql.join(items.map(part), sql` `);
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}
