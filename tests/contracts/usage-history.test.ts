import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { sql } from 'kysely';
import { StoreUnavailable } from '../../src/errors.ts';
import { applyUsageBatch } from '../../src/storage/postgres/usage/apply-usage-batch.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { OTHER } from '../../src/usage/cap-names.ts';
import type { UsageBatch } from '../../src/usage/live-usage.ts';
import { shardOf } from '../../src/usage/shards.ts';
import type { KeyHistory, UsageHistory } from '../../src/usage/usage-history.ts';
import { type Counts, noCounts, type UsageSlice } from '../../src/usage/usage-slice.ts';
import { limitDeletions } from '../support/limit-deletions.ts';
import { deleteKey } from '../support/one-key.ts';
import { createPostgresRecords, RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, storeKey } from '../support/sample-records.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';
import { HOUR, manyNames, requestsIn, sliceOf } from '../usage/support/sample-usage.ts';

const APPLIED = { kind: 'applied' };
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

describe.each(RECORD_STORES)('the usage history in %s', (_name, create) => {
  let store: TestRecords;
  let history: UsageHistory;
  let lastId = 0;
  beforeAll(async () => {
    store = await create();
    history = new PostgresUsageHistory(store.records.db);
  });
  afterAll(() => store.remove());

  async function newKey(): Promise<string> {
    return (await storeKey(store.records)).id;
  }

  /** Batches of different shards have nothing to do with each other: here all are of one. */
  function batchOf(...slices: readonly UsageSlice[]): UsageBatch {
    lastId += 1;
    return { shard: 7, source: 'test', id: lastId, slices, writers: new Map() };
  }

  const requestsOf = (key: KeyHistory) => [
    key.totals.requests,
    requestsIn(key.endpoints.values()),
    requestsIn(key.customers.values()),
  ];

  async function rowsOf(table: 'usage_hours' | 'usage_endpoint_days' | 'usage_customer_days', keyId: string) {
    return store.records.db.selectFrom(table).selectAll().where('key_id', '=', keyId).execute();
  }

  async function sumOf(table: Parameters<typeof rowsOf>[0], keyId: string): Promise<number> {
    return requestsIn(await rowsOf(table, keyId));
  }

  /** The requests of all keys, in all, limited, by hour and before some hours, that their days and their hours do not agree about. */
  async function disagreeing(): Promise<readonly object[]> {
    const byHour = Array.from({ length: 24 }, (_, hour) => `('of ${hour}', requests_${hour})`).join(', ');
    const { rows } = await sql<object>`
      SELECT day, key_id, plan_id, part, sum(count) FROM (
        SELECT day, key_id, plan_id, part, count FROM usage_key_days,
          LATERAL (VALUES ('before 6', requests_before_6), ('before 12', requests_before_12),
            ('before 18', requests_before_18), ('before 24', requests), ('limited', rate_limited), ${sql.raw(byHour)})
            AS parts (part, count)
        UNION ALL
        SELECT (hour AT TIME ZONE 'UTC')::date, key_id, plan_id, part, -count
        FROM usage_hours CROSS JOIN LATERAL (
          SELECT 'before ' || until AS part, requests AS count FROM (VALUES (6), (12), (18), (24)) AS parts (until)
            WHERE extract(hour FROM hour AT TIME ZONE 'UTC') < until
          UNION ALL SELECT 'limited', rate_limited
          UNION ALL SELECT 'of ' || extract(hour FROM hour AT TIME ZONE 'UTC')::int, requests
        ) AS parts
      ) AS both_of_them GROUP BY 1, 2, 3, 4 HAVING sum(count) <> 0`.execute(store.records.db);
    return rows;
  }

  it('has nothing of a key that was not used', async () => {
    const { totals, endpoints, customers } = await history.read(await newKey());
    expect([totals, endpoints.size, customers.size]).toEqual([noCounts(), 0, 0]);
  });

  it('adds up batches of many keys, by endpoint, customer and hour', async () => {
    const keyIds = await Promise.all(Array.from({ length: 20 }, newKey));
    const first = (keyId: string) =>
      sliceOf(
        keyId,
        { endpoint: '/ü\\"{}', customer: 'NULL', forwardedUs: 5_000_000_000, times: 4_000 },
        { endpoint: '/b', customer: '__proto__', successful: false, hour: HOUR + 1 },
      );
    const second = (keyId: string) =>
      sliceOf(keyId, { endpoint: '/b', customer: 'x', times: 3 }, { endpoint: '', customer: '' });
    expect(await history.apply(batchOf(...keyIds.toReversed().map(first)))).toEqual(APPLIED);
    const last = batchOf(...keyIds.map(second));
    expect(await history.apply(last)).toEqual(APPLIED);
    for (const keyId of keyIds) {
      const { lastIds, totals, endpoints, customers } = await history.read(keyId);
      if (shardOf(keyId) === 7) expect(lastIds.get('test')).toBe(last.id);
      expect(totals).toMatchObject({ requests: 4005, successful: 4004, forwarded: 4000 });
      expect(requestsByName(endpoints)).toEqual({ '/ü\\"{}': 4000, '/b': 4, '': 1 });
      expect(requestsByName(customers)).toEqual({ NULL: 4000, ['__proto__']: 1, x: 3, '': 1 });
      expect(await sumOf('usage_hours', keyId)).toBe(4005);
      expect(await sumOf('usage_endpoint_days', keyId)).toBe(4005);
      expect(await sumOf('usage_customer_days', keyId)).toBe(4005);
    }
  });

  it('adds a batch with so many names that they need several statements', async () => {
    const keyIds = await Promise.all(Array.from({ length: 12 }, newKey));
    expect(await history.apply(batchOf(...keyIds.map((keyId) => manyNames(keyId, 950))))).toEqual(APPLIED);
    for (const keyId of keyIds) expect(requestsOf(await history.read(keyId))).toEqual([950, 950, 950]);
  });

  it('keeps rows by hour and by day with every count, under the plan that applied', async () => {
    const keyId = await newKey();
    const counts: Counts = {
      requests: 10,
      successful: 5,
      forwarded: 8,
      forwardedUs: 7000,
      bytesIn: 11,
      bytesOut: 12_000_000_000,
      rateLimited: 2,
      clientErrors: 3,
      serverErrors: 1,
      shadowLimited: 4,
      units: 9,
    };
    const slice: UsageSlice = {
      ...sliceOf(keyId),
      hours: new Map([[HOUR, counts]]),
      endpoints: new Map([['/a', counts]]),
      customers: new Map([['c', counts]]),
    };
    await history.apply(batchOf(slice, { ...slice, planId: '' }));
    await history.apply(batchOf(slice));
    const twice = {
      requests: 20,
      successful: 10,
      forwarded: 16,
      forwarded_us: 14_000,
      rate_limited: 4,
      client_errors: 6,
      server_errors: 2,
      shadow_limited: 8,
      bytes_in: 22,
      bytes_out: 24_000_000_000,
    };
    const hour = new Date(HOUR * HOUR_MS);
    const day = hour.toISOString().slice(0, 10);
    expect(await rowsOf('usage_hours', keyId)).toContainEqual({
      key_id: keyId,
      hour,
      plan_id: 'gold',
      ...twice,
    });
    for (const [table, name] of [
      ['usage_endpoint_days', '/a'] as const,
      ['usage_customer_days', 'c'] as const,
    ]) {
      const rows = await rowsOf(table, keyId);
      expect(rows).toContainEqual({ key_id: keyId, day, plan_id: 'gold', name, ...twice });
      expect(rows.map(({ plan_id, requests }) => [plan_id, requests]).toSorted()).toEqual([
        ['', 10],
        ['gold', 20],
      ]);
    }
  });

  it('adds to a key whose counts are as high as they can be', async () => {
    const keyId = await newKey();
    const tooHigh = (hour: number) => sliceOf(keyId, { times: 2 ** 70, forwardedUs: 1, hour });
    await history.apply(batchOf(tooHigh(HOUR), { ...tooHigh(HOUR + 24), day: sliceOf(keyId).day + 1 }));
    await history.apply(batchOf(tooHigh(HOUR)));
    for (const table of ['usage_totals', 'usage_by_endpoint', 'usage_by_customer'])
      await sql`UPDATE ${sql.table(table)} SET requests = 9223372036854775807 WHERE key_id = ${keyId}`.execute(
        store.records.db,
      );
    expect(await history.apply(batchOf(sliceOf(keyId, {})))).toEqual(APPLIED);
    for (const sum of requestsOf(await history.read(keyId))) expect(sum).toBe(1e18);
    for (const { requests } of await rowsOf('usage_hours', keyId)) expect(requests).toBe(2 ** 53 - 1);
    expect(await disagreeing()).toEqual([]);
  });

  it('says when a key was last used', async () => {
    const keyId = await newKey();
    for (const lastUsedAtS of [1_800_000_000, 1_700_000_000]) {
      await history.apply(batchOf({ ...sliceOf(keyId, {}), lastUsedAtS }));
    }
    const { rows } = await sql<{ at: Date }>`
      SELECT last_used_at AS at FROM usage_totals WHERE key_id = ${keyId}`.execute(store.records.db);
    expect(rows).toEqual([{ at: new Date(1_800_000_000_000) }]);
  });

  it('adds a batch once, however often it is applied', async () => {
    const keyId = await newKey();
    const once = batchOf(sliceOf(keyId, { times: 3 }));
    expect(await history.apply(once)).toEqual(APPLIED);
    expect(await history.apply(once)).toEqual({ kind: 'applied_before' });
    expect(await history.apply(batchOf(sliceOf(keyId, {})))).toEqual(APPLIED);
    expect(await history.apply(once)).toEqual({ kind: 'outdated' });
    expect(requestsOf(await history.read(keyId))).toEqual([4, 4, 4]);
    expect(await sumOf('usage_hours', keyId)).toBe(4);
  });

  it('tells sources apart, whose ids mean nothing to each other', async () => {
    const keyId = await newKey();
    const shard = shardOf(keyId);
    for (const [source, id] of [
      ['one', 900],
      ['two', 100],
      ['two', 100],
    ] as const) {
      await history.apply({ shard, source, id, slices: [sliceOf(keyId, {})], writers: new Map() });
    }
    const { lastIds, totals } = await history.read(keyId);
    expect([lastIds.get('one'), lastIds.get('two'), totals.requests]).toEqual([900, 100, 2]);
  });

  it('knows which writes are in the batches that it has', async () => {
    const writers = new Map([
      ['one', 5],
      ['two', 8],
    ]);
    await history.apply({ ...batchOf(), writers });
    await history.apply({ ...batchOf(), writers: new Map([['one', 4]]) });
    expect(await history.hasWrite(7, 'one', 5)).toBe(true);
    expect(await history.hasWrite(7, 'one', 6)).toBe(false);
    expect(await history.hasWrite(8, 'one', 5)).toBe(false);
    expect(await history.hasWrite(7, 'three', 1)).toBe(false);
  });

  it('keeps the days of keys equal to the sums of their hours, for deleted keys too', async () => {
    const keyIds = await Promise.all(Array.from({ length: 4 }, newKey));
    const uses = fc.sample(
      fc.record({
        keyId: fc.constantFrom(...keyIds),
        day: fc.integer({ min: -2, max: 2 }).map((days) => Math.floor(HOUR / 24) + days),
        hourOfDay: fc.nat(23),
        planId: fc.constantFrom('', 'default', 'gold'),
        times: fc.integer({ min: 1, max: 1_000_000_000 }),
      }),
      { numRuns: 200, seed: 18 },
    );
    const slices = uses.map(({ keyId, day, hourOfDay, planId, times }) => ({
      ...sliceOf(keyId, { hour: day * 24 + hourOfDay, times }),
      day,
      planId,
    }));
    const shards = keyIds.map((id) => slices.filter(({ keyId }) => keyId === id));
    // At the same time, as replicas move different shards.
    await Promise.all(
      shards.map(async (ofShard, shard) => {
        for (let start = 0; start < ofShard.length; start += 10)
          await history.apply({ ...batchOf(...ofShard.slice(start, start + 10)), shard });
      }),
    );
    await deleteKey(store.records.keys, keyIds[0] ?? '', sampleChange());
    expect(await disagreeing()).toEqual([]);
    const { rows } = await sql<{ requests: number }>`
      SELECT sum(requests)::bigint AS requests FROM usage_key_days WHERE key_id = ANY (${keyIds}::text[])`.execute(
      store.records.db,
    );
    expect(rows[0]?.requests).toBe(uses.reduce((sum, { times }) => sum + times, 0));
  });

  it('gives 500 endpoints and 1000 customers of a key a row, first come, first served', async () => {
    const keyId = await newKey();
    const batches = [manyNames(keyId, 450, 'a'), manyNames(keyId, 1100, 'b'), manyNames(keyId, 450, 'a')];
    for (const slice of batches) await history.apply(batchOf(slice));
    const { totals, endpoints, customers } = await history.read(keyId);
    expect(totals.requests).toBe(2000);
    expect([endpoints.size, customers.size]).toEqual([501, 1001]);
    expect([endpoints.get('/a449')?.requests, endpoints.get('/b49')?.requests]).toEqual([2, 1]);
    expect([endpoints.get(OTHER)?.requests, customers.get(OTHER)?.requests]).toEqual([1050, 550]);
    const days = await rowsOf('usage_endpoint_days', keyId);
    expect(requestsByName(new Map(days.map((row) => [row.name, row])))).toEqual(requestsByName(endpoints));
  });

  it('adds what belongs to deleted keys to their hours and days alone', async () => {
    const [keyId, deleted] = [await newKey(), await newKey()];
    await history.apply(batchOf(sliceOf(deleted, { times: 5 })));
    await deleteKey(store.records.keys, deleted, sampleChange());
    const late = batchOf(...[deleted, keyId].map((id) => sliceOf(id, { times: 2 }, { endpoint: '/late' })));
    expect(await history.apply(late)).toEqual(APPLIED);
    expect(await history.apply(late)).toEqual({ kind: 'applied_before' });
    expect(requestsOf(await history.read(deleted))).toEqual([0, 0, 0]);
    expect(requestsOf(await history.read(keyId))).toEqual([3, 3, 3]);
    expect(await sumOf('usage_hours', deleted)).toBe(8);
    expect(await sumOf('usage_customer_days', deleted)).toBe(8);
    const days = await rowsOf('usage_endpoint_days', deleted);
    expect(requestsByName(new Map(days.map((row) => [row.name, row])))).toEqual({ '/a': 7, '/late': 1 });
    expect(await disagreeing()).toEqual([]);
    for (const table of ['usage_totals', 'usage_by_endpoint', 'usage_by_customer']) {
      const { rows } = await sql`SELECT 1 FROM ${sql.table(table)} WHERE key_id = ${deleted}`.execute(
        store.records.db,
      );
      expect(rows).toEqual([]);
    }
  });

  it('gives a day of a deleted key no more than 500 endpoints and 1000 customers', async () => {
    const keyId = await newKey();
    await history.apply(batchOf(manyNames(keyId, 450, 'a')));
    await deleteKey(store.records.keys, keyId, sampleChange());
    const late = { ...manyNames(keyId, 1100, 'b'), planId: 'silver' };
    await history.apply(batchOf(manyNames(keyId, 450, 'a'), late));
    await history.apply(batchOf(late));
    const endpoints = await rowsOf('usage_endpoint_days', keyId);
    const customers = await rowsOf('usage_customer_days', keyId);
    const namesOf = (rows: typeof endpoints) => new Set(rows.map(({ name }) => name));
    expect([namesOf(endpoints).size, namesOf(customers).size]).toEqual([501, 1001]);
    const requestsOfName = (name: string) => requestsIn(endpoints.filter((row) => row.name === name));
    expect([requestsOfName('/a449'), requestsOfName('/b49'), requestsOfName(OTHER)]).toEqual([2, 2, 2100]);
    expect([requestsIn(endpoints), requestsIn(customers)]).toEqual([3100, 3100]);
    expect(await sumOf('usage_hours', keyId)).toBe(3100);
  });

  it('keeps what was in a batch while its key was being deleted', async () => {
    const keyIds = await Promise.all(Array.from({ length: 20 }, newKey));
    await Promise.all([
      history.apply(batchOf(...keyIds.map((keyId) => sliceOf(keyId, { times: 2 })))),
      ...keyIds.map((keyId) => deleteKey(store.records.keys, keyId, sampleChange())),
    ]);
    for (const keyId of keyIds) {
      expect(await sumOf('usage_hours', keyId)).toBe(2);
      expect(await sumOf('usage_endpoint_days', keyId)).toBe(2);
      expect(requestsOf(await history.read(keyId))).toEqual([0, 0, 0]);
    }
  });

  it('keeps the hours and days of a deleted key', async () => {
    const keyId = await newKey();
    await history.apply(batchOf(sliceOf(keyId, { times: 5 })));
    await deleteKey(store.records.keys, keyId, sampleChange());
    expect(await sumOf('usage_hours', keyId)).toBe(5);
    expect(await sumOf('usage_endpoint_days', keyId)).toBe(5);
    expect(await sumOf('usage_customer_days', keyId)).toBe(5);
  });

  it('drops the months that are too old, and makes this one and the next', async () => {
    const own = await create();
    const { db } = own.records;
    const months = new PostgresUsageHistory(db);
    const at = (text: string) => Date.parse(text);
    await own.records.keys.insert({ ...sampleKey(), id: 'key_of_months' }, sampleChange());
    const pruneAt = (now: string, since: string) =>
      months.prune({ nowMs: at(now), hoursKeptMs: at(now) - at(since), daysKeptMs: at(now) - at(since) });
    await pruneAt('2026-01-15T00:00:00Z', '2025-10-15T00:00:00Z');
    const hourOf = (text: string) => at(text) / HOUR_MS;
    const used = [
      '2025-09-30T23:00:00Z',
      '2026-01-10T00:00:00Z',
      '2026-01-31T23:00:00Z',
      '2026-02-01T00:00:00Z',
    ];
    const slices = used.map((hour) => ({
      ...sliceOf('key_of_months', { hour: hourOf(hour) }),
      day: Math.floor(hourOf(hour) / 24),
    }));
    await months.apply(batchOf(...slices));
    const kept = async () =>
      (await db.selectFrom('usage_hours').select('hour').orderBy('hour').execute()).map(({ hour }) =>
        hour.toISOString().slice(0, 13),
      );
    const totals = async () =>
      (await sql<{ hour: Date }>`SELECT hour FROM usage_total_hours ORDER BY hour`.execute(db)).rows.map(
        ({ hour }) => hour.toISOString().slice(0, 13),
      );
    expect(await kept()).toEqual(['2025-09-30T23', '2026-01-10T00', '2026-01-31T23', '2026-02-01T00']);
    await pruneAt('2026-02-15T00:00:00Z', '2026-01-15T00:00:00Z');
    expect(await kept()).toEqual(['2026-01-10T00', '2026-01-31T23', '2026-02-01T00']);
    expect(await totals()).toEqual(await kept());
    await pruneAt('2026-03-15T00:00:00Z', '2026-02-01T00:00:00Z');
    expect(await kept()).toEqual(['2026-02-01T00']);
    const days = await sql<{ day: string }>`SELECT day::text FROM usage_key_days`.execute(db);
    expect(days.rows).toEqual([{ day: '2026-02-01' }]);
    expect(await totals()).toEqual(await kept());
    const { rows } = await sql<{ name: string }>`
      SELECT inhrelid::regclass::text AS name FROM pg_inherits
      WHERE inhparent = 'usage_customer_days'::regclass ORDER BY 1`.execute(db);
    expect(rows.map(({ name }) => name)).toEqual([
      'usage_customer_days_2026_02',
      'usage_customer_days_2026_03',
      'usage_customer_days_2026_04',
      'usage_customer_days_default',
    ]);
    await own.remove();
  });

  it('keeps current usage where the clock of a replica is a year ahead of the store', async () => {
    const own = await create();
    const { db } = own.records;
    const current = new PostgresUsageHistory(db);
    const hour = Math.floor(Date.now() / HOUR_MS);
    await current.apply(batchOf({ ...sliceOf('key_current', { hour }), day: Math.floor(hour / 24) }));
    const kept = { hoursKeptMs: YEAR_MS / 4, daysKeptMs: YEAR_MS / 2 };
    await current.prune({ nowMs: Date.now(), ...kept });
    await current.prune({ nowMs: Date.now() + YEAR_MS, ...kept });
    for (const table of ['usage_hours', 'usage_key_days', 'usage_customer_days', 'usage_total_hours'])
      expect([table, (await sql`SELECT FROM ${sql.table(table)}`.execute(db)).rows.length]).toEqual([
        table,
        1,
      ]);
    await own.remove();
  });

  it('moves the rows of a month into its partition where that was not made in time', async () => {
    const own = await create();
    const { db } = own.records;
    const months = new PostgresUsageHistory(db);
    const keyId = 'key_of_late_months';
    await own.records.keys.insert({ ...sampleKey(), id: keyId }, sampleChange());
    const hour = Date.parse('2026-06-10T07:00:00Z') / HOUR_MS;
    const slice = { ...sliceOf(keyId, { hour, times: 3 }), day: Math.floor(hour / 24) };
    await months.apply(batchOf(slice));
    const tables = ['usage_hours', 'usage_key_days', 'usage_endpoint_days', 'usage_customer_days'];
    const partitions = async () => {
      const { rows } = await sql<{ partition: string; requests: number }>`${sql.join(
        tables.map(
          (table) => sql`SELECT tableoid::regclass::text AS partition, requests FROM ${sql.table(table)}`,
        ),
        sql` UNION ALL `,
      )}`.execute(db);
      return rows;
    };
    expect(await partitions()).toEqual(
      tables.map((table) => ({ partition: `${table}_default`, requests: 3 })),
    );
    await months.prune({ nowMs: hour * HOUR_MS, hoursKeptMs: YEAR_MS, daysKeptMs: YEAR_MS });
    expect(await partitions()).toEqual(
      tables.map((table) => ({ partition: `${table}_2026_06`, requests: 3 })),
    );
    await months.apply(batchOf(slice));
    expect((await partitions()).map(({ requests }) => requests)).toEqual([6, 6, 6, 6]);
    await own.remove();
  });

  it('removes what is old although other steps fail, and says which', async () => {
    const own = await create();
    const { db } = own.records;
    const history = new PostgresUsageHistory(db);
    await own.records.keys.insert({ ...sampleKey(), id: 'key_of_steps' }, sampleChange());
    const hour = Date.parse('2025-06-10T07:00:00Z') / HOUR_MS;
    await history.apply(batchOf({ ...sliceOf('key_of_steps', { hour }), day: Math.floor(hour / 24) }));
    // As of a role that may not create tables.
    await sql`CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'no table is created' USING ERRCODE = '42501'; END $$`.execute(db);
    await sql`CREATE EVENT TRIGGER forbid ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION forbid()`.execute(
      db,
    );
    const pruned = history.prune({ nowMs: Date.now(), hoursKeptMs: 0, daysKeptMs: 0 });
    const { errors } = await pruned.then(
      () => new AggregateError([]),
      (error: AggregateError) => error,
    );
    expect(new Set(errors.map(({ message }) => message))).toEqual(new Set(['no table is created']));
    for (const table of ['usage_hours', 'usage_key_days', 'usage_customer_days', 'usage_total_hours'])
      expect([table, (await sql`SELECT FROM ${sql.table(table)}`.execute(db)).rows]).toEqual([table, []]);
    await own.remove();
  });

  it('removes the hours of all keys in parts, which each end within the time of a statement', async () => {
    const own = await create();
    const { db } = own.records;
    await limitDeletions(db, 'usage_total_hours', 100_000);
    await sql`INSERT INTO usage_total_hours
      SELECT '2024-06-10T07:00:00Z', 'plan-' || n, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0
      FROM generate_series(1, 100001) AS n`.execute(db);
    await new PostgresUsageHistory(db).prune({ nowMs: Date.now(), hoursKeptMs: 0, daysKeptMs: 0 });
    expect((await sql`SELECT FROM usage_total_hours`.execute(db)).rows).toEqual([]);
    await own.remove();
  });

  it('knows the last write of a writer for seven days', async () => {
    const { db } = store.records;
    await history.apply({
      ...batchOf(),
      writers: new Map([
        ['six', 5],
        ['eight', 5],
      ]),
    });
    await sql`UPDATE usage_writers
      SET moved_at = now() - CASE writer WHEN 'six' THEN interval '6 days' ELSE interval '8 days' END
      WHERE writer IN ('six', 'eight')`.execute(db);
    await history.prune({ nowMs: Date.now(), hoursKeptMs: 100 * YEAR_MS, daysKeptMs: 100 * YEAR_MS });
    expect([await history.hasWrite(7, 'six', 5), await history.hasWrite(7, 'eight', 5)]).toEqual([
      true,
      false,
    ]);
  });

  it('adds a batch once, although Postgres twice rolls it back for another transaction', async () => {
    const { db } = store.records;
    // A sequence goes on although its transaction is rolled back.
    await sql`CREATE SEQUENCE attempts`.execute(db);
    await sql`CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('attempts') <= 2 THEN RAISE EXCEPTION USING ERRCODE = 'deadlock_detected'; END IF;
      RETURN NULL; END $$`.execute(db);
    await sql`CREATE TRIGGER fail_twice AFTER INSERT ON usage_total_hours
      FOR EACH STATEMENT EXECUTE FUNCTION fail_twice()`.execute(db);
    const keyId = await newKey();
    try {
      expect(await history.apply(batchOf(sliceOf(keyId, { times: 3 })))).toEqual(APPLIED);
      const { rows } = await sql`SELECT last_value > 2 AS "hasFailedTwice" FROM attempts`.execute(db);
      expect(rows).toEqual([{ hasFailedTwice: true }]);
      expect((await history.read(keyId)).totals.requests).toBe(3);
    } finally {
      await sql`DROP FUNCTION fail_twice CASCADE`.execute(db);
      await sql`DROP SEQUENCE attempts`.execute(db);
    }
  });

  it('takes the same batches from many at once, and counts them once', async () => {
    const keyIds = await Promise.all(Array.from({ length: 30 }, newKey));
    const shuffled = () => keyIds.toSorted(() => Math.random() - 0.5);
    for (const round of [1, 2, 3, 4, 5]) {
      const batch = batchOf(...keyIds.map((keyId) => manyNames(keyId, 5, `${round % 2}`)));
      const attempts = [1, 2, 3, 4, 5].map(() => {
        const slices = shuffled().map((keyId) => manyNames(keyId, 5, `${round % 2}`));
        return history.apply({ ...batch, slices });
      });
      const outcomes = await Promise.all(attempts);
      expect(outcomes.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
    }
    for (const keyId of keyIds) {
      const key = await history.read(keyId);
      expect(requestsOf(key)).toEqual([25, 25, 25]);
      expect(key.endpoints.get('/11')?.requests).toBe(3);
    }
  });
});

// PGlite has one connection: what asks while a transaction is open waits for it anyway.
describe('a write that is asked for while Postgres adds a batch of its shard', () => {
  let store: TestRecords;
  let history: UsageHistory;
  beforeAll(async () => {
    store = await createPostgresRecords();
    history = new PostgresUsageHistory(store.records.db);
  });
  afterAll(() => store.remove());

  const batchOf = (shard: number, id: number, sequence: number): UsageBatch => ({
    shard,
    source: 'test',
    id,
    slices: [],
    writers: new Map([['w', sequence]]),
  });

  /** Asks for write 5 of `w` while a transaction has applied the batch, then ends it. Resolves with the reply, which must not come before. */
  async function askDuring(batch: UsageBatch, end: 'commit' | 'rollback'): Promise<boolean> {
    const transaction = await store.records.db.startTransaction().execute();
    try {
      expect(await applyUsageBatch(transaction, batch)).toEqual(APPLIED);
      let hasReply = false;
      const reply = history.hasWrite(batch.shard, 'w', 5).finally(() => {
        hasReply = true;
      });
      await until(async () => hasReply || (await waitingForLocks(store.records.db)) > 0);
      expect(hasReply).toBe(false);
      await transaction[end]().execute();
      return await reply;
    } finally {
      if (!transaction.isCommitted && !transaction.isRolledBack) await transaction.rollback().execute();
    }
  }

  it('is known once the batch is committed', async () => {
    await history.apply(batchOf(1, 1, 4));
    expect(await askDuring(batchOf(1, 2, 5), 'commit')).toBe(true);
  });

  it('is known once the first batch ever of the shard is committed', async () => {
    expect(await askDuring(batchOf(2, 1, 5), 'commit')).toBe(true);
  });

  it('is known once the first batch of another data set is committed', async () => {
    await history.apply(batchOf(3, 1, 4));
    expect(await askDuring({ ...batchOf(3, 1, 5), source: 'another' }, 'commit')).toBe(true);
  });

  it('is unknown when the batch is rolled back', async () => {
    await history.apply(batchOf(4, 1, 4));
    expect(await askDuring(batchOf(4, 2, 5), 'rollback')).toBe(false);
  });

  it('is neither known nor unknown when the transaction takes too long', async () => {
    await store.records.db.transaction().execute(async (transaction) => {
      await applyUsageBatch(transaction, batchOf(5, 1, 5));
      const asking = store.records.db.transaction().execute(async (other) => {
        await sql`SET LOCAL statement_timeout = '100ms'`.execute(other);
        return new PostgresUsageHistory(other).hasWrite(5, 'w', 5);
      });
      await expect(asking).rejects.toThrow(StoreUnavailable);
    });
    expect(await history.hasWrite(5, 'w', 5)).toBe(true);
  });

  it('does not wait for batches of other shards', async () => {
    await store.records.db.transaction().execute(async (transaction) => {
      await applyUsageBatch(transaction, batchOf(6, 1, 5));
      expect(await history.hasWrite(7, 'w', 5)).toBe(false);
    });
  });

  it('does not keep the next batch waiting once there is a reply', async () => {
    expect(await history.hasWrite(8, 'w', 5)).toBe(false);
    expect(await history.apply(batchOf(8, 1, 5))).toEqual(APPLIED);
    expect(await history.hasWrite(8, 'w', 5)).toBe(true);
  });
});

function requestsByName(list: ReadonlyMap<string, { readonly requests: number }>): object {
  return Object.fromEntries([...list].map(([name, { requests }]) => [name, requests]));
}

describe('a month whose usage came before its partition', () => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await createPostgresRecords();
  });
  afterAll(() => store.remove());

  it('stays where it is if it is too much to be moved at once', async () => {
    const own = await createPostgresRecords();
    const { db } = own.records;
    const places = async () => {
      const { rows } = await sql<{ partition: string; count: number }>`
        SELECT tableoid::regclass::text AS partition, count(*) FROM usage_hours GROUP BY 1`.execute(db);
      return rows;
    };
    const insert = (first: number, last: number) =>
      sql`
      INSERT INTO usage_hours (key_id, hour, plan_id, requests, successful, forwarded, forwarded_us)
      SELECT 'key_' || number, '2026-06-10T07:00:00Z', 'default', 1, 1, 1, 1
      FROM generate_series(${first}::int, ${last}::int) AS number`.execute(db);
    const prune = () =>
      new PostgresUsageHistory(db).prune({
        nowMs: Date.parse('2026-06-20T00:00:00Z'),
        hoursKeptMs: YEAR_MS,
        daysKeptMs: YEAR_MS,
      });
    await insert(1, 100_001);
    await prune();
    expect(await places()).toEqual([{ partition: 'usage_hours_default', count: 100_001 }]);
    await sql`DELETE FROM usage_hours WHERE key_id = 'key_1'`.execute(db);
    await prune();
    expect(await places()).toEqual([{ partition: 'usage_hours_2026_06', count: 100_000 }]);
    await own.remove();
  });

  it('is never missing from what is read while its partition is made, and is not rejected', async () => {
    const { db } = store.records;
    const history = new PostgresUsageHistory(db);
    const batchOf = (id: number): UsageBatch => ({
      ...{ shard: 7, source: 'test', id, writers: new Map() },
      slices: [sliceOf('key_early', { times: 5 })],
    });
    await history.apply(batchOf(1));
    // Ends each change of a table only once nobody holds the lock.
    await sql`CREATE FUNCTION wait_here() RETURNS event_trigger LANGUAGE plpgsql SET lock_timeout = 0
      AS 'BEGIN PERFORM pg_advisory_xact_lock(7); END'`.execute(db);
    await sql`CREATE EVENT TRIGGER wait_here ON ddl_command_end WHEN TAG IN ('ALTER TABLE')
      EXECUTE FUNCTION wait_here()`.execute(db);
    const holder = await db.startTransaction().execute();
    try {
      await sql`SELECT pg_advisory_xact_lock(7)`.execute(holder);
      const made = history.prune({ nowMs: HOUR * HOUR_MS, hoursKeptMs: YEAR_MS, daysKeptMs: YEAR_MS });
      await until(async () => (await waitingForLocks(db)) === 1);
      const read = db
        .selectFrom('usage_hours')
        .select('requests')
        .where('key_id', '=', 'key_early')
        .execute();
      const added = history.apply(batchOf(2));
      await until(async () => (await waitingForLocks(db)) === 3);
      await holder.commit().execute();
      expect(requestsIn(await read)).toBeGreaterThanOrEqual(5);
      expect(await added).toEqual(APPLIED);
      await made;
    } finally {
      if (!holder.isCommitted) await holder.rollback().execute();
    }
    expect(requestsIn(await db.selectFrom('usage_hours').selectAll().execute())).toBe(10);
  });
});
