import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { systemRandom } from '../../src/platform/random.ts';
import { InProcessLiveUsage } from '../../src/storage/embedded/in-process-live-usage.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import type { Usage } from '../../src/usage/create-usage.ts';
import type { LiveUsage } from '../../src/usage/live-usage.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deleteKey } from '../support/one-key.ts';
import { createEmbeddedRecords, createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, storeKey } from '../support/sample-records.ts';
import { testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { expectedUsage, mix } from '../usage/support/expected-usage.ts';
import { requestsIn } from '../usage/support/sample-usage.ts';
import { openRedisUsage, usageOver } from '../usage/support/usage-stores.ts';

// In the past: what is removed must be old by the clock of Postgres too.
const NOW_MS = Date.UTC(2025, 5, 1, 12, 30);
const DAY_MS = 86_400_000;

interface Stores {
  readonly records: TestRecords;
  readonly live: LiveUsage;
  close(): Promise<void>;
}

async function embedded(): Promise<Stores> {
  const records = await createEmbeddedRecords();
  return {
    records,
    live: new InProcessLiveUsage(new ManualClock(NOW_MS), systemRandom),
    close: () => records.remove(),
  };
}

async function shared(): Promise<Stores> {
  const records = await createPostgresRecords();
  const { live, close } = await openRedisUsage(testRedisUrl());
  return {
    records,
    live,
    close: async () => {
      await close();
      await records.remove();
    },
  };
}

describe.each([
  ['the process and PGlite', embedded],
  ['Redis and Postgres', shared],
])('usage statistics in %s', (_name, open) => {
  let stores: Stores;
  let clock: ManualClock;
  beforeAll(async () => {
    stores = await open();
    clock = new ManualClock(NOW_MS);
  });
  afterAll(() => stores.close());

  function replica(): Usage {
    const { live, records } = stores;
    const history = new PostgresUsageHistory(records.records.db);
    return usageOver({ live, history, clock, flushEveryMs: 5 });
  }

  async function newKey(): Promise<string> {
    return (await storeKey(stores.records.records)).id;
  }

  async function hoursOf(keyId: string): Promise<readonly { readonly requests: number }[]> {
    const { db } = stores.records.records;
    return db.selectFrom('usage_hours').select('requests').where('key_id', '=', keyId).execute();
  }

  it('shows what was recorded in every list, also when it is all in the history', async () => {
    const keyIds = [await newKey(), await newKey()];
    const usage = replica();
    usage.start();
    const requests = mix(0, 3000, keyIds);
    for (const request of requests) usage.recorder.record(request);
    await until(async () => (await usage.reader.read(keyIds[0] ?? '')).requests === 1500);
    // A batch for each shard: the two keys may be of the same one.
    const shards = new Set(keyIds.map(shardOf)).size;
    await until(() => usage.stats.flusher.batchesApplied >= shards);
    for (const keyId of keyIds) {
      expect(await usage.reader.read(keyId)).toEqual(expectedUsage(keyId, requests));
    }
    expect(usage.stats.keysBuffered).toBe(0);
    expect(await usage.stop(5000)).toBe(true);
  });

  it('keeps at the stop what no timer has written yet', async () => {
    const keyId = await newKey();
    const usage = replica();
    const requests = mix(0, 500, [keyId]);
    for (const request of requests) usage.recorder.record(request);
    expect(await stores.live.read([keyId])).toEqual([]);
    expect(await usage.stop(5000)).toBe(true);
    expect(await replica().reader.read(keyId)).toEqual(expectedUsage(keyId, requests));
    if (!stores.live.isShared) {
      const history = new PostgresUsageHistory(stores.records.records.db);
      expect((await history.read(keyId)).totals.requests).toBe(500);
    }
  });

  it('has no totals of a deleted key, but its hours with what was recorded late', async () => {
    const keyId = await newKey();
    const usage = replica();
    for (const request of mix(0, 100, [keyId])) usage.recorder.record(request);
    await usage.stop(5000);
    await deleteKey(stores.records.records.keys, keyId, sampleChange());
    const after = replica();
    for (const request of mix(0, 100, [keyId])) after.recorder.record(request);
    after.start();
    // A reading of what is pending writes what was recorded first.
    await until(async () => (await after.pending.read([keyId])).length === 0);
    expect(await after.stop(5000)).toBe(true);
    expect(await after.reader.read(keyId)).toEqual(expectedUsage(keyId, []));
    expect(requestsIn(await hoursOf(keyId))).toBe(200);
  });

  it('does not hold up other keys with what was recorded for a key that is gone', async () => {
    const [keyId, gone] = [await newKey(), await newKey()];
    await deleteKey(stores.records.records.keys, gone, sampleChange());
    const usage = replica();
    for (const request of mix(0, 100, [keyId, gone])) usage.recorder.record(request);
    usage.start();
    await until(async () => requestsIn(await hoursOf(gone)) === 50);
    await until(async () => (await usage.reader.read(keyId)).requests === 50);
    expect((await usage.reader.read(gone)).requests).toBe(0);
    expect(await usage.stop(5000)).toBe(true);
  });

  it('keeps hours and days by month, and drops the months that are no longer kept', async () => {
    const keyId = await newKey();
    const usage = replica();
    usage.startPruning();
    const { db } = stores.records.records;
    const [request] = mix(0, 1, [keyId]);
    if (request === undefined) throw new Error('no request');
    const monthsOf = async (table: 'usage_hours' | 'usage_endpoint_days') => {
      const { rows } = await sql<{ month: string }>`
        SELECT DISTINCT tableoid::regclass::text AS month FROM ${sql.table(table)}
        WHERE key_id = ${keyId} ORDER BY 1`.execute(db);
      return rows.map(({ month }) => month);
    };
    await until(
      async () =>
        // The last one that is made.
        (
          await sql`SELECT to_regclass('usage_customer_days_2025_06') AS month
      WHERE to_regclass('usage_customer_days_2025_06') IS NOT NULL`.execute(db)
        ).rows.length === 1,
    );
    usage.recorder.record(request);
    // Writes it.
    await usage.pending.read([keyId]);
    usage.start();
    await until(async () => (await monthsOf('usage_endpoint_days')).length === 1);
    expect(await monthsOf('usage_hours')).toEqual(['usage_hours_2025_06']);
    expect(await usage.stop(5000)).toBe(true);
    clock.advance((90 + 31) * DAY_MS);
    const next = replica();
    next.startPruning();
    await until(async () => (await monthsOf('usage_hours')).length === 0);
    expect(await monthsOf('usage_endpoint_days')).toEqual(['usage_endpoint_days_2025_06']);
    expect((await next.reader.read(keyId)).requests).toBe(1);
    await next.stop(5000);
  });
});
