import { type RawBuilder, sql } from 'kysely';
import type { Counts } from '../../usage/usage-sums.ts';
import type { RecordsDatabase } from './records-database.ts';

/** A row of `usage_by_endpoint` or `usage_by_customer`, or what is to be added to one. */
export interface UsageRow {
  readonly keyId: string;
  readonly name: string;
  readonly counts: Readonly<Counts>;
}

/** The tables that hold a list of names for each key. */
export type UsageListTable = 'usage_by_endpoint' | 'usage_by_customer';

/** The columns of `Counts`, as every table has them. */
export interface CountColumns {
  readonly requests: number;
  readonly successful: number;
  readonly forwarded: number;
  readonly forwarded_us: number;
}

export function countsOfColumns(columns: CountColumns): Counts {
  return {
    requests: columns.requests,
    successful: columns.successful,
    forwarded: columns.forwarded,
    forwardedUs: columns.forwarded_us,
  };
}

/** For an upsert's `SET`: adds the new row's counts to those of the table, which the statement calls `stored`. */
export const ADD_EXCLUDED = sql`
  requests = stored.requests + excluded.requests,
  successful = stored.successful + excluded.successful,
  forwarded = stored.forwarded + excluded.forwarded,
  forwarded_us = stored.forwarded_us + excluded.forwarded_us`;

/** Four arrays for `unnest`, in the order of the columns: one parameter each, however many rows there are. */
export function countArrays(counts: readonly Readonly<Counts>[]): RawBuilder<unknown> {
  return sql`
    ${counts.map((each) => each.requests)}::bigint[],
    ${counts.map((each) => each.successful)}::bigint[],
    ${counts.map((each) => each.forwarded)}::bigint[],
    ${counts.map((each) => each.forwardedUs)}::bigint[]`;
}

/** Adds to the rows that exist. Resolves with the others, to which nothing was done. */
export async function addToKnownRows(
  db: RecordsDatabase,
  table: UsageListTable,
  rows: readonly UsageRow[],
): Promise<readonly UsageRow[]> {
  if (rows.length === 0) return [];
  const updated = await sql<{ position: number }>`
    UPDATE ${sql.table(table)} AS stored SET
      requests = stored.requests + added.requests,
      successful = stored.successful + added.successful,
      forwarded = stored.forwarded + added.forwarded,
      forwarded_us = stored.forwarded_us + added.forwarded_us
    FROM unnest(
      ${rows.map((row) => row.keyId)}::text[],
      ${rows.map((row) => row.name)}::text[],
      ${countArrays(rows.map((row) => row.counts))}
    ) WITH ORDINALITY AS added (key_id, name, requests, successful, forwarded, forwarded_us, position)
    WHERE stored.key_id = added.key_id AND stored.name = added.name
    RETURNING added.position`.execute(db);
  if (updated.rows.length === rows.length) return [];
  const known = new Set(updated.rows.map(({ position }) => position));
  return rows.filter((_, index) => !known.has(index + 1));
}

/** Adds rows, new or not. */
export async function addRows(
  db: RecordsDatabase,
  table: UsageListTable,
  rows: readonly UsageRow[],
): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    INSERT INTO ${sql.table(table)} AS stored (key_id, name, requests, successful, forwarded, forwarded_us)
    SELECT * FROM unnest(
      ${rows.map((row) => row.keyId)}::text[],
      ${rows.map((row) => row.name)}::text[],
      ${countArrays(rows.map((row) => row.counts))}
    )
    ON CONFLICT (key_id, name) DO UPDATE SET ${ADD_EXCLUDED}`.execute(db);
}
