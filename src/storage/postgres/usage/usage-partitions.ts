import { sql } from 'kysely';
import { deleteInParts } from '../delete-in-parts.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** The tables that are partitioned by month, and the column that they are partitioned by. */
const PARTITIONED = {
  usage_hours: 'hour',
  usage_key_days: 'day',
  usage_endpoint_days: 'day',
  usage_customer_days: 'day',
} as const;
/** The tables that are kept only as long as hours: `usage_key_days` is of use only together with hours. */
const KEPT_LIKE_HOURS: ReadonlySet<string> = new Set(['usage_hours', 'usage_key_days']);

/** The longest wait for a lock on a whole table: reads and writes queue up behind the wait. */
const LOCK_TIMEOUT = '2s';

/** Rows that are moved or deleted within a second or two. */
const ROWS_AT_ONCE = 100_000;

/** From which instants on usage over time is kept, and what time it is. Milliseconds since 1970. */
interface KeptSince {
  readonly nowMs: number;
  readonly hoursSinceMs: number;
  readonly daysSinceMs: number;
}

/** Rejects if it fails; the others can be made all the same. */
type Step = () => Promise<unknown>;

/** A month of UTC; its name is as in `usage_hours_2026_11`. */
interface Month {
  readonly name: string;
  readonly startsAt: Date;
  readonly endsAt: Date;
}

/**
 * The steps that create the partitions of this month and the next, and drop those that ended before the retention begins. Rows without a
 * partition are in the default one, from which old rows are deleted.
 */
export async function partitionSteps(
  db: RecordsDatabase,
  kept: KeptSince,
  goesOn?: () => boolean,
): Promise<readonly Step[]> {
  const months = [monthOf(kept.nowMs, 0), monthOf(kept.nowMs, 1)];
  const steps: Step[] = [];
  for (const [table, column] of Object.entries(PARTITIONED)) {
    const sinceMs = KEPT_LIKE_HOURS.has(table) ? kept.hoursSinceMs : kept.daysSinceMs;
    const present = await partitionsOf(db, table);
    const missing = months.filter(({ name }) => !present.includes(`${table}_${name}`));
    const old = present.filter((partition) => {
      const endsAtMs = monthOfName(partition)?.endsAt.getTime() ?? Number.POSITIVE_INFINITY;
      return endsAtMs <= sinceMs;
    });
    // What is in the default partition is kept as long as what is in that of its month.
    const since = startOfMonth(sinceMs);
    steps.push(
      ...missing.map((month) => () => createPartition(db, { table, column }, month)),
      ...old.map((partition) => () => dropPartition(db, partition)),
      () => deleteBefore(db, { table: `${table}_default`, column, goesOn }, since),
    );
  }
  return steps;
}

async function partitionsOf(db: RecordsDatabase, table: string): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ${table}::regclass`.execute(
    db,
  );
  return rows.map(({ name }) => name);
}

/**
 * Creates a month's partition. If it was not created in time, rows of the month are in the default partition: they are moved. Where these are
 * too many they stay there, because the table could not be read meanwhile.
 */
async function createPartition(
  db: RecordsDatabase,
  { table, column }: { readonly table: string; readonly column: string },
  { name, startsAt, endsAt }: Month,
): Promise<void> {
  const partition = `${table}_${name}`;
  const rest = `${table}_default`;
  const [from, to] = [`'${startsAt.toISOString()}'`, `'${endsAt.toISOString()}'`];
  await withShortLocks(db, async (transaction, run) => {
    // Another replica may do the same at this moment. And a statement that has looked up the partitions, but not read them, would miss
    // the rows that are moved.
    await run(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    if ((await partitionsOf(transaction, table)).includes(partition)) return;
    const { rows } = await sql`SELECT FROM ${sql.table(rest)}
      WHERE ${sql.ref(column)} >= ${startsAt} AND ${sql.ref(column)} < ${endsAt}
      OFFSET ${ROWS_AT_ONCE} LIMIT 1`.execute(transaction);
    if (rows.length > 0) return;
    await run(`CREATE TABLE ${partition} (LIKE ${table} INCLUDING ALL) WITH (fillfactor = 70)`);
    await run(`WITH moved AS (DELETE FROM ${rest} WHERE ${column} >= ${from} AND ${column} < ${to} RETURNING *)
      INSERT INTO ${partition} SELECT * FROM moved`);
    await run(`ALTER TABLE ${table} ATTACH PARTITION ${partition} FOR VALUES FROM (${from}) TO (${to})`);
  });
}

async function dropPartition(db: RecordsDatabase, partition: string): Promise<void> {
  await withShortLocks(db, (_, run) => run(`DROP TABLE IF EXISTS ${partition}`));
}

/** Deletes old rows of a table in parts, while `goesOn` says so. */
export async function deleteBefore(
  db: RecordsDatabase,
  {
    table,
    column,
    goesOn,
  }: { readonly table: string; readonly column: string; readonly goesOn: (() => boolean) | undefined },
  since: Date,
): Promise<void> {
  const old = sql`SELECT ctid FROM ${sql.table(table)}
    WHERE ${sql.ref(column)} < ${since.toISOString()}::timestamptz LIMIT ${ROWS_AT_ONCE}`;
  await deleteInParts(db, sql`${sql.table(table)} WHERE ctid = ANY (ARRAY(${old}))`, goesOn);
}

/** Runs fixed statements in a transaction that does not wait long for locks. */
async function withShortLocks(
  db: RecordsDatabase,
  work: (transaction: RecordsDatabase, run: (statement: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    const run = async (statement: string) => void (await sql.raw(statement).execute(transaction));
    await run(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
    await work(transaction, run);
  });
}

/** Usage is kept in whole months. */
export function startOfMonth(instantMs: number): Date {
  return monthOf(instantMs, 0).startsAt;
}

/** The month that is `later` months after the month of an instant. */
function monthOf(instantMs: number, later: number): Month {
  const instant = new Date(instantMs);
  return monthAt(instant.getUTCFullYear(), instant.getUTCMonth() + later);
}

function monthOfName(partition: string): Month | undefined {
  const match = /_(\d{4})_(\d{2})$/.exec(partition);
  return match === null ? undefined : monthAt(Number(match[1]), Number(match[2]) - 1);
}

function monthAt(year: number, month: number): Month {
  const startsAt = new Date(Date.UTC(year, month));
  return {
    name: startsAt.toISOString().slice(0, 7).replace('-', '_'),
    startsAt,
    endsAt: new Date(Date.UTC(year, month + 1)),
  };
}
