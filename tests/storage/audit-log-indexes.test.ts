import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2025, 0, 1);
let store: TestRecords;
beforeAll(async () => {
  store = await createPostgresRecords();
  // Twenty thousand entries of a token about keys with one tag, one an hour, and behind them one entry of each kind that is looked for.
  await sql`
    INSERT INTO audit_log (sequence, at, action, actor_type, actor_id, actor_name, target_type, target_id, target_tags, changes,
      request_id, address, outcome, key_id, previous_hash, hash)
    SELECT number, timestamptz '2025-01-01Z' + number * interval '1 hour', 'key.update', CASE number WHEN 1 THEN 'root' WHEN 2 THEN 'config' ELSE 'token' END,
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
  const before = await scansOf(index);
  const other = await store.reopen('default');
  expect(await other.audit.list(filter, { limit: 51 })).toHaveLength(1);
  // Postgres adds what a connection has used to the statistics as it ends, or after ten seconds.
  await other.close();
  await until(async () => (await scansOf(index)) > before);
});

it.each([
  ['few entries', START_MS, START_MS + 744 * HOUR_MS, [744, 743]],
  ['many entries', START_MS, START_MS + 5000 * HOUR_MS, [5000, 4999]],
  ['all up to its end', undefined, START_MS + 9000 * HOUR_MS, [9000, 8999]],
])('a page of an old span of time with %s reads none that are newer', async (_what, fromMs, toMs, newest) => {
  const filter = { ...(fromMs !== undefined && { fromMs }), toMs: toMs + 1 };
  const entriesRead = async () => (await statisticsOf('audit_log_pkey')).entries;
  const [scans, before] = [await scansOf('audit_log_at_sequence'), await entriesRead()];
  const other = await store.reopen('default');
  const first = await other.audit.list(filter, { limit: 2 });
  await other.close();
  expect(first.map(({ sequence }) => sequence)).toEqual(newest);
  await until(async () => (await scansOf('audit_log_at_sequence')) > scans);
  expect((await entriesRead()) - before).toBeLessThanOrEqual(3);
});

it('a page of what one actor did in an old span of time reads nothing that is newer', async () => {
  const before = await statisticsOf('audit_log_pkey');
  const other = await store.reopen('default');
  const toMs = START_MS + 5000 * HOUR_MS + 1;
  const page = await other.audit.list({ action: 'key.update', fromMs: START_MS, toMs }, { limit: 3 });
  const next = await other.audit.list({ action: 'key.update', toMs }, { limit: 2, beforeSequence: 4998 });
  await other.close();
  expect([...page, ...next].map(({ sequence }) => sequence)).toEqual([5000, 4999, 4998, 4997, 4996]);
  await until(async () => (await statisticsOf('audit_log_pkey')).scans > before.scans);
  expect((await statisticsOf('audit_log_pkey')).entries - before.entries).toBeLessThan(6000);
});

it('a page of what a token did in a span of time reads none of what others did after it', async () => {
  const { db } = store.records;
  await sql`UPDATE audit_log SET actor_id = 'adm_b' WHERE sequence BETWEEN 100 AND 3100`.execute(db);
  await sql`ANALYZE audit_log`.execute(db);
  const before = await statisticsOf('audit_log_at_sequence');
  const other = await store.reopen('default');
  const page = await other.audit.list({ actorId: 'adm_b', fromMs: START_MS }, { limit: 3 });
  await other.close();
  expect(page.map(({ sequence }) => sequence)).toEqual([3100, 3099, 3098]);
  const entries = async () => (await statisticsOf('audit_log_actor_id')).entries;
  await until(async () => (await entries()) > 0);
  expect((await statisticsOf('audit_log_at_sequence')).entries - before.entries).toBeLessThan(5000);
});

it('pages of a span of time have each entry once, by time, also where clocks of replicas differed', async () => {
  const { db, audit } = store.records;
  const moved = (hours: number) =>
    sql`
    UPDATE audit_log SET at = at + ${hours} * interval '1 hour' WHERE sequence = 700`.execute(db);
  await moved(3);
  const filter = { fromMs: START_MS + 698 * HOUR_MS, toMs: START_MS + 705 * HOUR_MS };
  const seen: number[] = [];
  for (;;) {
    const beforeSequence = seen.at(-1);
    const page = await audit.list(filter, {
      limit: 2,
      ...(beforeSequence !== undefined && { beforeSequence }),
    });
    if (page.length === 0) break;
    seen.push(...page.map(({ sequence }) => sequence));
  }
  await moved(-3);
  expect(seen).toEqual(
    [704, 703, 702, 701, 700, 699, 698].toSorted((a, b) => timeOf(b) - timeOf(a) || b - a),
  );
});

function timeOf(sequence: number): number {
  return sequence === 700 ? 703 : sequence;
}

async function scansOf(index: string): Promise<number> {
  return (await statisticsOf(index)).scans;
}

async function statisticsOf(index: string): Promise<{ readonly scans: number; readonly entries: number }> {
  const { rows } = await sql<{ scans: number; entries: number }>`
    SELECT idx_scan AS scans, idx_tup_read AS entries FROM pg_stat_user_indexes WHERE indexrelname = ${index}`.execute(
    store.records.db,
  );
  return rows[0] ?? { scans: Number.NaN, entries: Number.NaN };
}
