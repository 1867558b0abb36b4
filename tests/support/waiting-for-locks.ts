import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { until } from './until.ts';

/** How many statements in this database wait for a lock. */
export async function waitingForLocks(db: QueryExecutorProvider): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(db);
  return rows[0]?.count ?? 0;
}

/** Makes a change whose transaction is committed only when what `act` starts waits for one of its locks. Resolves with what `act` does. */
export async function actDuring<Result>(
  db: RecordsDatabase,
  change: RawBuilder<unknown>,
  act: () => PromiseLike<Result>,
): Promise<Result> {
  const acting = await db.transaction().execute(async (transaction) => {
    await change.execute(transaction);
    const started = Promise.resolve(act());
    await until(async () => (await waitingForLocks(db)) > 0);
    // In an object: a promise alone would be awaited before the commit.
    return { started };
  });
  return acting.started;
}
