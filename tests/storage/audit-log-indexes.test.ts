import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { until } from '../support/until.ts';

let store: TestRecords;
beforeAll(async () => {
  store = await createPostgresRecords();
  // Twenty thousand entries of a token about keys with one tag, and behind them one entry of each kind that is looked for.
  await sql`
    INSERT INTO audit_log (sequence, at, action, actor_type, actor_id, actor_name, target_type, target_id, target_tags, changes,
      request_id, address, outcome, key_id, previous_hash, hash)
    SELECT number, '2025-01-01', 'key.update', CASE number WHEN 1 THEN 'root' WHEN 2 THEN 'config' ELSE 'token' END,
      CASE WHEN number > 2 THEN 'adm_a' END, 'a name', 'key', 'key_a', CASE number WHEN 3 THEN '{us}' ELSE '{eu}' END::text[], '{}',
      'req', '::1', 'success', '\\x00000000', decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex')
    FROM generate_series(1, 20000) AS number`.execute(store.records.db);
  await sql`ANALYZE audit_log`.execute(store.records.db);
});
afterAll(() => store.remove());

it.each([
  ['what root did', 'audit_log_actor_type', { actorId: 'root' }],
  ['what configurations did', 'audit_log_actor_type', { actorId: 'config' }],
  ['what was done to keys with a tag', 'audit_log_target_tags', { onlyTags: ['us'] }],
])('a page of %s reads no other entries', async (_what, index, filter) => {
  const scans = async () => {
    const { rows } = await sql<{ scans: number }>`
      SELECT idx_scan AS scans FROM pg_stat_user_indexes WHERE indexrelname = ${index}`.execute(
      store.records.db,
    );
    return rows[0]?.scans ?? Number.NaN;
  };
  const before = await scans();
  const other = await store.reopen('default');
  expect(await other.audit.list(filter, { limit: 51 })).toHaveLength(1);
  // Postgres adds what a connection has used to the statistics as it ends, or after ten seconds.
  await other.close();
  await until(async () => (await scans()) > before);
});
