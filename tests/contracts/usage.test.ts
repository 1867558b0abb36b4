import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemRandom } from '../../src/platform/random.ts';
import { InProcessLiveUsage } from '../../src/storage/embedded/in-process-live-usage.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/postgres-usage-history.ts';
import { createUsage, type Usage } from '../../src/usage/create-usage.ts';
import type { LiveUsage } from '../../src/usage/live-usage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createEmbeddedRecords, createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleKey } from '../support/sample-records.ts';
import { testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { expectedUsage, mix } from '../usage/support/expected-usage.ts';
import { openRedisUsage, silent } from '../usage/support/usage-stores.ts';

const NOW_MS = Date.UTC(2030, 5, 1, 12, 30);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Stores {
  readonly records: TestRecords;
  readonly live: LiveUsage;
  close(): Promise<void>;
}

async function embedded(): Promise<Stores> {
  const records = await createEmbeddedRecords();
  return { records, live: new InProcessLiveUsage(new ManualClock(NOW_MS)), close: () => records.remove() };
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

  function usageEvery(ms: number): Usage {
    const { live, records } = stores;
    const history = new PostgresUsageHistory(records.records.db);
    const pace = { writeEveryMs: ms, flushEveryMs: ms };
    return createUsage({
      mask: (name) => name,
      live,
      history,
      clock,
      random: systemRandom,
      log: silent,
      retentionDays: 90,
      ...pace,
    });
  }

  async function newKey(): Promise<string> {
    const key = sampleKey();
    await stores.records.records.keys.insert(key);
    return key.id;
  }

  it('shows what was recorded, in every list, and still does when it is all in the history', async () => {
    const keyIds = [await newKey(), await newKey()];
    const usage = usageEvery(5);
    usage.start();
    const requests = mix(0, 3000, keyIds);
    for (const request of requests) usage.recorder.record(request);
    await until(async () => (await usage.reader.read(keyIds[0] ?? '')).requests === 1500);
    await until(() => usage.stats.flusher.batchesApplied >= 2);
    for (const keyId of keyIds) {
      expect(await usage.reader.read(keyId)).toEqual(expectedUsage(keyId, requests));
    }
    expect(usage.stats.keysTallied).toBe(0);
    expect(await usage.stop(5000)).toBe(true);
  });

  it('keeps at the stop what no timer has written yet', async () => {
    const keyId = await newKey();
    const usage = usageEvery(60_000);
    usage.start();
    const requests = mix(0, 500, [keyId]);
    for (const request of requests) usage.recorder.record(request);
    expect(await stores.live.read(keyId)).toEqual([]);
    expect(await usage.stop(5000)).toBe(true);
    expect(await usageEvery(60_000).reader.read(keyId)).toEqual(expectedUsage(keyId, requests));
    if (!stores.live.isShared) {
      const history = new PostgresUsageHistory(stores.records.records.db);
      expect((await history.read(keyId)).sums.totals.requests).toBe(500);
    }
  });

  it('has the hours with requests, whether they are in the history or not', async () => {
    const keyId = await newKey();
    const usage = usageEvery(60_000);
    const [request] = mix(0, 1, [keyId]);
    if (request === undefined) throw new Error('no request');
    usage.recorder.record({ ...request, successful: true });
    await usage.stop(5000);
    clock.advance(2 * HOUR_MS);
    usage.recorder.record({ ...request, successful: false });
    usage.recorder.record({ ...request, successful: true });
    await usage.stop(5000);
    const hour = Math.floor(clock.nowMs() / HOUR_MS) * HOUR_MS;
    expect(await usage.timeline.readHours(keyId, 0)).toEqual([
      { startsAtMs: hour - 2 * HOUR_MS, requests: 1, successful: 1, failed: 0 },
      { startsAtMs: hour, requests: 2, successful: 1, failed: 1 },
    ]);
    expect(await usage.timeline.readHours(keyId, hour)).toHaveLength(1);
  });

  it('has nothing of a deleted key, and drops what is recorded late', async () => {
    const keyId = await newKey();
    const usage = usageEvery(60_000);
    for (const request of mix(0, 100, [keyId])) usage.recorder.record(request);
    await usage.stop(5000);
    await stores.records.records.keys.delete(keyId);
    await usage.eraser.erase(keyId);
    for (const request of mix(0, 100, [keyId])) usage.recorder.record(request);
    expect(await usage.stop(5000)).toBe(true);
    expect(usage.stats.writer.recordsDropped).toBe(100);
    expect(await usage.reader.read(keyId)).toEqual(expectedUsage(keyId, []));
  });

  it('drops at the flush what was recorded for a key that is gone, without holding up others', async () => {
    const [keyId, gone] = [await newKey(), await newKey()];
    await stores.records.records.keys.delete(gone);
    const usage = usageEvery(5);
    for (const request of mix(0, 100, [keyId, gone])) usage.recorder.record(request);
    usage.start();
    await until(() => usage.stats.flusher.recordsDropped === 50);
    await until(async () => (await usage.reader.read(keyId)).requests === 50);
    expect((await usage.reader.read(gone)).requests).toBe(0);
    expect(await usage.stop(5000)).toBe(true);
  });

  it('removes hours that are no longer kept when it starts', async () => {
    const keyId = await newKey();
    const usage = usageEvery(5);
    const [request] = mix(0, 1, [keyId]);
    if (request === undefined) throw new Error('no request');
    usage.recorder.record(request);
    usage.start();
    await until(() => usage.stats.flusher.batchesApplied > 0);
    clock.advance(91 * DAY_MS);
    usage.recorder.record(request);
    await until(() => usage.stats.flusher.batchesApplied > 1, { timeoutMs: 15_000 });
    expect(await usage.stop(5000)).toBe(true);
    const next = usageEvery(60_000);
    next.startPruning();
    await until(async () => (await next.timeline.readHours(keyId, 0)).length === 1);
    expect((await next.reader.read(keyId)).requests).toBe(2);
    await next.stop(5000);
  });
});
