import type { Records } from '../../../src/storage/postgres/open-records.ts';
import { createPostgresRecords } from '../../support/records.ts';
import { withPostgres } from '../../support/test-stores.ts';

/** Calls `measure` with a migrated record store in a new database of the tests' Postgres, and removes both when it is over. */
export function withRecords(measure: (records: Records) => Promise<void>): Promise<void> {
  return withPostgres(async () => {
    const { records, remove } = await createPostgresRecords();
    await measure(records).finally(remove);
  });
}
