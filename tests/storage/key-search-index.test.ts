import { it } from '@jest/globals';
import { sql } from 'kysely';
import { createPostgresRecords } from '../support/records.ts';
import { until } from '../support/until.ts';

it('a search for three characters of keys can use the index of them', async () => {
  const store = await createPostgresRecords();
  const { db } = store.records;
  // A handful of keys is read faster without an index: Postgres says whether it could take one.
  await sql`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database()); END $$`.execute(
    db,
  );
  const other = await store.reopen('default');
  const selection = {
    filter: { text: 'abc', tags: [] },
    sort: 'createdAt',
    order: 'desc',
    limit: 10,
  } as const;
  await other.keyList.list(selection, 0);
  // Postgres adds what a connection has used to the statistics as it ends, or after ten seconds.
  await other.close();
  await until(async () => {
    const { rows } = await sql<{ scans: number }>`
      SELECT idx_scan AS scans FROM pg_stat_user_indexes WHERE indexrelname = 'key_search_texts_content'`.execute(
      db,
    );
    return (rows[0]?.scans ?? 0) > 0;
  });
  await store.remove();
});
