import type { Records } from '../../../src/storage/postgres/open-records.ts';
import { createPostgresRecords } from '../../support/records.ts';
import { findPostgres, makeMigratedDatabase } from '../../support/test-stores.ts';

/** Calls `measure` with a migrated record store in a new database of the tests' Postgres, and removes both when it is over. */
export async function withRecords(measure: (records: Records) => Promise<void>): Promise<void> {
  const server = await findPostgres();
  try {
    process.env.TEST_DATABASE_URL = server.url;
    process.env.TEST_DATABASE_TEMPLATE = (await makeMigratedDatabase(server)).url;
    const { records, remove } = await createPostgresRecords();
    try {
      await measure(records);
    } finally {
      await remove();
    }
  } finally {
    await server.stop();
  }
}
