import { sql } from 'kysely';
import type { RecordsDatabase } from './records-database.ts';

/**
 * The time by the clock of a replica or by that of Postgres, whichever is earlier: what is removed for its age must be old by both, or one clock
 * that is ahead would remove what is current. Milliseconds since 1970.
 */
export async function earlierNowMs(db: RecordsDatabase, replicaNowMs: number): Promise<number> {
  const { rows } = await sql<{ now: Date }>`SELECT clock_timestamp() AS now`.execute(db);
  return Math.min(replicaNowMs, ...rows.map(({ now }) => now.getTime()));
}
