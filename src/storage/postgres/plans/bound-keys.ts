import { sql } from 'kysely';
import type { BoundKeys } from '../../../errors.ts';
import { hasTags } from '../keys/key-rows.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** Counts the keys bound to each plan, for a reader who sees only keys with all of `onlyTags`. Plans without keys are left out. */
export async function countBoundKeys(
  db: RecordsDatabase,
  planIds: readonly string[],
  onlyTags: readonly string[],
): Promise<ReadonlyMap<string, BoundKeys>> {
  // Without tags, Postgres can count with the index by plan alone.
  const isSeen = onlyTags.length === 0 ? sql<boolean>`true` : hasTags(onlyTags);
  const { rows } = await sql<{ plan_id: string; bound: number; seen: number }>`
    SELECT plan_id, count(*) AS bound, count(*) FILTER (WHERE ${isSeen}) AS seen
    FROM consumer_keys WHERE plan_id = ANY (${planIds}::text[]) GROUP BY plan_id ORDER BY plan_id`.execute(
    db,
  );
  return new Map(
    rows.map(({ plan_id, bound, seen }) => [plan_id, { boundKeys: seen, hasUnseenKeys: bound > seen }]),
  );
}
