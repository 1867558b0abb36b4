import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { until } from '../support/until.ts';

let store: TestRecords;
beforeAll(async () => {
  store = await createPostgresRecords();
  // Five thousand keys that were rotated, all with secrets that the gateway made.
  await sql`
    INSERT INTO consumer_keys (id, name, created_at, updated_at, secret_version, lookup)
    SELECT 'key_' || number, 'a name', '2025-01-01', '2025-01-01', 1, sha256(('present' || number)::bytea)
    FROM generate_series(1, 5000) AS number`.execute(store.records.db);
  await sql`
    INSERT INTO previous_secrets (key_id, version, origin, lookup, rotated_at, valid_until)
    SELECT id, 0, 'generated', sha256(('previous' || id)::bytea), '2025-01-01', '2025-01-01' FROM consumer_keys`.execute(
    store.records.db,
  );
  await sql`ANALYZE consumer_keys, previous_secrets`.execute(store.records.db);
});
afterAll(() => store.remove());

it.each([
  ['present', 'consumer_keys_secret_origin'],
  ['previous', 'previous_secrets_origin'],
])('a look for %s secrets from outside reads none that the gateway made', async (_which, index) => {
  const scans = async () => {
    const { rows } = await sql<{ scans: number }>`
      SELECT idx_scan::int AS scans FROM pg_stat_user_indexes WHERE indexrelname = ${index}`.execute(
      store.records.db,
    );
    return rows[0]?.scans ?? Number.NaN;
  };
  const before = await scans();
  const other = await store.reopen('default');
  expect(await other.secrets.importedSecrets()).toEqual({ version: 0, given: false, hashed: false });
  // Postgres adds what a connection has used to the statistics as it ends, or after ten seconds.
  await other.close();
  // One for secrets that were given, one for those that were hashed.
  await until(async () => (await scans()) >= before + 2);
});
