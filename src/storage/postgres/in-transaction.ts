import { sql } from 'kysely';
import type { RecordsDatabase } from './records-database.ts';

/**
 * Runs work in one transaction. Within a transaction, work begins after a savepoint: if it rejects, only its writes are rolled back, and
 * the transaction goes on, also after a statement that failed. Savepoints may be nested, but must not overlap otherwise.
 */
export function inTransaction<Result>(
  db: RecordsDatabase,
  work: (transaction: RecordsDatabase) => Promise<Result>,
): Promise<Result> {
  return db.isTransaction ? afterSavepoint(db, work) : db.transaction().execute(work);
}

const SAVEPOINT = 'part_of_unit';

async function afterSavepoint<Result>(
  transaction: RecordsDatabase,
  work: (transaction: RecordsDatabase) => Promise<Result>,
): Promise<Result> {
  await sql.raw(`SAVEPOINT ${SAVEPOINT}`).execute(transaction);
  try {
    const result = await work(transaction);
    await sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`).execute(transaction);
    return result;
  } catch (error) {
    await sql.raw(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`).execute(transaction);
    await sql.raw(`RELEASE SAVEPOINT ${SAVEPOINT}`).execute(transaction);
    throw error;
  }
}
