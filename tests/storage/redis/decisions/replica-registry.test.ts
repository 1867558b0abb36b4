import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { ReplicaRegistry } from '../../../../src/storage/redis/decisions/replica-registry.ts';
import { UsageSeries } from '../../../../src/usage/series/usage-series.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { testRedisUrl } from '../../../support/stores.ts';

const DAY_MS = 86_400_000;
const notRead = () => Promise.reject(new Error('no rows are read here'));

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl());
});
afterAll(() => redis.disconnect());

it('usage is complete up to now although the wall clock was a day ahead for a moment', async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const registry = new ReplicaRegistry(redis, randomUUID(), clock);
  const series = new UsageSeries({
    store: { read: notRead, startOfRow: notRead },
    clock,
    retentionDays: 90,
    dailyRetentionDays: 90,
    pending: { read: notRead, oldestAtMs: async () => undefined, knownOldestAtMs: () => undefined },
    outages: () => registry.outages,
  });
  for (const aheadMs of [0, DAY_MS, -DAY_MS, 0, 0, 0, 0]) {
    clock.setWallClockAhead(aheadMs);
    clock.advance(2000);
    expect(await registry.beat()).toBe(true);
  }
  expect(registry.outages).toEqual([]);
  expect(await series.completeUntilMs()).toBe(clock.nowMs() - 5000);
  await registry.stop();
});
