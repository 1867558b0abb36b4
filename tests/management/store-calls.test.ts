import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { RedisWindowCounters } from '../../src/storage/redis/counters/redis-window-counters.ts';
import { RedisLiveUsage } from '../../src/storage/redis/usage/redis-live-usage.ts';
import { StoredUsage } from '../../src/usage/stored-usage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { testRedisUrl } from '../support/stores.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

let store: TestRecords;
let redis: Redis;
let management: TestManagement;
beforeAll(async () => {
  store = await createPostgresRecords();
  redis = new Redis(testRedisUrl());
  await redis.flushdb();
  const live = new RedisLiveUsage(redis, new ManualClock(START_MS));
  management = await startManagement({
    records: store.records,
    counters: new RedisWindowCounters(redis),
    usage: new StoredUsage(live, new PostgresUsageHistory(store.records.db)),
  });
  for (const batch of [0, 1]) {
    const keys = Array.from({ length: 500 }, (_, index) => ({
      name: `key ${batch}-${index}`,
      secret: `a-secret-from-outside-${batch}-${index}`,
    }));
    await management.send('post', '/api-keys/import', { keys }).expect(200);
  }
}, 120_000);
afterAll(async () => {
  await management?.stop();
  await store?.remove();
  redis?.disconnect();
});

/** How many statements and commands a page takes, and how many keys it has. */
async function callsOf(query: string): Promise<{ keys: number; postgres: number; redis: number }> {
  // Once before, so that scripts are loaded.
  await management.send('get', `/consumer-api-key?${query}`).expect(200);
  const statements = jest.spyOn(Client.prototype, 'query');
  const commands = jest.spyOn(redis, 'sendCommand');
  try {
    const { body } = await management.send('get', `/consumer-api-key?${query}`).expect(200);
    return {
      keys: body.apiKeys.length,
      postgres: statements.mock.calls.length,
      redis: commands.mock.calls.length,
    };
  } finally {
    statements.mockRestore();
    commands.mockRestore();
  }
}

describe('the list of keys', () => {
  it('queries Postgres as often for 1000 keys as for 10, and Redis not at all', async () => {
    const few = await callsOf('count=true&limit=10');
    const many = await callsOf('count=true&limit=1000');
    expect(few.keys).toBe(10);
    expect(many.keys).toBe(1000);
    expect(few.postgres).toBeGreaterThan(0);
    expect({ ...many, keys: 0 }).toEqual({ ...few, keys: 0 });
    expect(many.redis).toBe(0);
  });

  it('makes no more store calls for a longer page with usage and limits', async () => {
    const few = await callsOf('include=usage,limits&limit=100');
    const many = await callsOf('include=usage,limits&limit=200');
    expect([few.keys, many.keys]).toEqual([100, 200]);
    expect(many.postgres).toBe(few.postgres);
    expect(few.redis).toBeGreaterThan(0);
    // Usage is in shards: at most their number, however many keys.
    expect(many.redis).toBeLessThanOrEqual(2 * few.redis);
  });
});
