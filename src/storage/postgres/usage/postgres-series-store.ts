import { type QueryResult, type RawBuilder, sql } from 'kysely';
import { OTHER } from '../../../usage/cap-names.ts';
import type {
  SeriesCounts,
  SeriesPosition,
  SeriesRow,
  SeriesRows,
  SeriesSelection,
  SeriesStore,
} from '../../../usage/series/series-store.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { bucketSums, type RankedSums, rankedSums } from './series-buckets.ts';

/** A row as Postgres gives it. */
interface ResultRow extends SeriesCounts {
  readonly start: Date;
  readonly group1: string;
  readonly group2: string;
  readonly total: number;
}

/** Usage over time in Postgres, on a server or embedded. */
export class PostgresSeriesStore implements SeriesStore {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async read(selection: SeriesSelection, limit: number, after?: SeriesPosition): Promise<SeriesRows> {
    const [group1 = '', group2 = ''] = after?.group ?? [];
    const rest =
      after === undefined
        ? sql``
        : sql`WHERE (start, group1, group2) > (${new Date(after.startMs)}::timestamptz, ${group1}, ${group2})`;
    const query = sql<ResultRow>`
      ${series(selection)}
      SELECT start, group1, group2, requests, successful, forwarded, "forwardedUs",
        "rateLimited", "clientErrors", "serverErrors", "shadowLimited", (SELECT count(*) FROM series) AS total
      FROM series ${rest} ORDER BY start, group1, group2 LIMIT ${limit}`;
    const { rows } = await this.#execute(query, selection);
    return {
      rows: rows.map((row) => seriesRow(row, selection.groupBy.length)),
      total: rows[0]?.total ?? 0,
    };
  }

  async startOfRow(selection: SeriesSelection, index: number): Promise<number | undefined> {
    const query = sql<{ start: Date }>`
      ${series(selection)} SELECT start FROM series ORDER BY start OFFSET ${index} LIMIT 1`;
    const { rows } = await this.#execute(query, selection);
    return rows[0]?.start.getTime();
  }

  /** Gives a query that groups by key enough memory: with the server's default it would sort its sums in temporary files. */
  #execute<Row>(query: RawBuilder<Row>, { groupBy }: SeriesSelection): Promise<QueryResult<Row>> {
    if (!groupBy.includes('key')) return query.execute(this.#db);
    return this.#db.transaction().execute(async (transaction) => {
      await sql`SELECT set_config('work_mem', ${SUMS_MEMORY}, true)`.execute(transaction);
      return query.execute(transaction);
    });
  }
}

/** Enough for the sums of some 300 000 keys. A server process takes only as much as it needs. */
const SUMS_MEMORY = '64MB';

function seriesRow({ start, group1, group2, total, ...counts }: ResultRow, groups: number): SeriesRow {
  return { startMs: start.getTime(), group: [group1, group2].slice(0, groups), counts };
}

/** A `WITH` that ends with `series`, one row for each bucket and group. */
function series(selection: SeriesSelection): RawBuilder<unknown> {
  const { top, groupBy } = selection;
  const ranked = rankedSums(selection);
  if (ranked !== undefined) return rankedSeries(ranked, groupBy.length);
  const sums = sql`sums AS (${bucketSums(selection)})`;
  if (top === undefined) return sql`WITH ${sums}, series AS (${sumsBy(sql`sums`)})`;
  // Rows that are `__other__` already are summed with the rest, and take no place from a name.
  const named = groupBy.length === 1 ? sql`WHERE group1 <> ${OTHER}` : sql``;
  return sql`WITH ${sums},
    largest AS (
      SELECT group1, group2 FROM sums ${named} GROUP BY group1, group2
      ORDER BY sum(requests) DESC, group1, group2 LIMIT ${top}
    ),
    renamed AS (
      SELECT start,
        CASE WHEN largest.group1 IS NULL THEN ${OTHER} ELSE sums.group1 END AS group1,
        CASE WHEN largest.group1 IS NOT NULL THEN sums.group2 ELSE ${groupBy.length === 2 ? OTHER : ''} END AS group2,
        requests, successful, forwarded, "forwardedUs", "rateLimited", "clientErrors", "serverErrors", "shadowLimited"
      FROM sums LEFT JOIN largest ON largest.group1 = sums.group1 AND largest.group2 = sums.group2
    ),
    series AS (${sumsBy(sql`renamed`)})`;
}

function rankedSeries({ largest, named, all }: RankedSums, groups: number): RawBuilder<unknown> {
  return sql`WITH largest AS (${largest}), named AS (${named}),
    rest AS (
      SELECT start, ${OTHER} AS group1, ${groups === 2 ? OTHER : ''} AS group2,
        requests, successful, forwarded, "forwardedUs", "rateLimited", "clientErrors", "serverErrors", "shadowLimited"
      FROM (${all}) AS every
      UNION ALL
      SELECT start, ${OTHER}, ${groups === 2 ? OTHER : ''},
        -requests, -successful, -forwarded, -"forwardedUs", -"rateLimited", -"clientErrors", -"serverErrors", -"shadowLimited"
      FROM named
    ),
    series AS (SELECT * FROM named UNION ALL ${sumsBy(sql`rest`)} HAVING sum(requests) > 0)`;
}

function sumsBy(rows: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    SELECT start, group1, group2,
      sum(requests) AS requests, sum(successful) AS successful,
      sum(forwarded) AS forwarded, sum("forwardedUs") AS "forwardedUs",
      sum("rateLimited") AS "rateLimited", sum("clientErrors") AS "clientErrors",
      sum("serverErrors") AS "serverErrors", sum("shadowLimited") AS "shadowLimited"
    FROM ${rows} GROUP BY start, group1, group2`;
}
