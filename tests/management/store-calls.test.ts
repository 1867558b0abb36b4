import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import type { Test } from 'supertest';
import { systemRandom } from '../../src/platform/random.ts';
import { PostgresUsageHistory } from '../../src/storage/postgres/usage/postgres-usage-history.ts';
import { RedisWindowCounters } from '../../src/storage/redis/counters/redis-window-counters.ts';
import { RedisLiveUsage } from '../../src/storage/redis/usage/redis-live-usage.ts';
import type { LiveUsage } from '../../src/usage/live-usage.ts';
import { SHARDS } from '../../src/usage/shards.ts';
import { StoredUsage } from '../../src/usage/stored-usage.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { testRedisUrl } from '../support/stores.ts';
import { sliceOf } from '../usage/support/sample-usage.ts';
import { writeSlices } from '../usage/support/usage-stores.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

/** What a request has sent to the stores: statements, and commands. */
interface Calls {
  readonly postgres: number;
  readonly redis: number;
}

const ITS_SECRET = 'a-secret-from-outside-10-0';

let store: TestRecords;
let redis: Redis;
let management: TestManagement;
/** Of one key, while there are ten. */
let ofOneOfTen: { readonly detail: Calls; readonly found: Calls };

beforeAll(async () => {
  store = await createPostgresRecords();
  redis = new Redis(testRedisUrl());
  await redis.flushdb();
  const live = new RedisLiveUsage(redis, new ManualClock(START_MS));
  management = await startManagement({
    records: store.records,
    counters: new RedisWindowCounters(redis, systemRandom),
    usage: new StoredUsage(live, new PostgresUsageHistory(store.records.db)),
  });
  await makeKeys(live, 10);
  ofOneOfTen = await callsOfOne();
  await makeKeys(live, 490);
  await makeKeys(live, 500);
});
afterAll(async () => {
  await management?.stop();
  await store?.remove();
  redis?.disconnect();
});

/** Each with usage that waits in Redis. */
async function makeKeys(live: LiveUsage, count: number): Promise<void> {
  const keys = Array.from({ length: count }, (_, index) => ({
    name: `key ${count}-${index}`,
    secret: `a-secret-from-outside-${count}-${index}`,
  }));
  const { body } = await management.send('post', '/api-keys/import', { keys }).expect(200);
  for (const { consumerApiKeyId } of body.results) await writeSlices(live, sliceOf(consumerApiKeyId, {}));
}

async function callsOf(send: () => Test): Promise<Calls & { readonly keys: number | undefined }> {
  // Once before, so that scripts are loaded.
  await send().expect(200);
  const statements = jest.spyOn(Client.prototype, 'query');
  const commands = jest.spyOn(redis, 'sendCommand');
  try {
    const { body } = await send().expect(200);
    return {
      keys: body.apiKeys?.length,
      postgres: statements.mock.calls.length,
      redis: commands.mock.calls.length,
    };
  } finally {
    statements.mockRestore();
    commands.mockRestore();
  }
}

function callsOfPage(query: string) {
  return callsOf(() => management.send('get', `/consumer-api-key?${query}`));
}

/** The calls for the detail of a key, and to find it by its secret. */
async function callsOfOne(): Promise<typeof ofOneOfTen> {
  const find = () => management.send('post', '/api-keys/find', { secret: ITS_SECRET });
  const { body } = await find();
  return {
    detail: await callsOf(() => management.send('get', `/consumer-api-key/${body.consumerApiKeyId}`)),
    found: await callsOf(find),
  };
}

describe('the list of keys', () => {
  it.each([
    ['no filter', 'order=asc'],
    ['a total', 'count=true'],
    ['sort=lastUsedAt', 'sort=lastUsedAt'],
    ['a search', 'q=key'],
    ['a short search', 'q=ey&count=true'],
    ['many filters', 'q=key&status=active&unusedSince=2030-01-01T00:00:00Z&sort=lastUsedAt&count=true'],
  ])('queries Postgres as often for 1000 keys as for 10, with %s', async (_with, query) => {
    const few = await callsOfPage(`${query}&limit=10`);
    const many = await callsOfPage(`${query}&limit=1000`);
    expect([few.keys, many.keys]).toEqual([10, 1000]);
    expect(few.postgres).toBeGreaterThan(0);
    expect([many.postgres, many.redis]).toEqual([few.postgres, 0]);
  });

  it.each(['usage', 'limits', 'usage,limits'])(
    'makes a bounded number of store calls for 200 keys with include=%s',
    async (include) => {
      const few = await callsOfPage(`include=${include}&sort=lastUsedAt&q=key&limit=10`);
      const many = await callsOfPage(`include=${include}&sort=lastUsedAt&q=key&limit=200`);
      expect([few.keys, many.keys]).toEqual([10, 200]);
      expect(many.postgres).toBe(few.postgres);
      expect(few.redis).toBeGreaterThan(0);
      // Usage is in shards: each is read with two commands, however many keys it has.
      expect(many.redis - few.redis).toBeLessThan(2 * SHARDS);
    },
  );
});

describe('one of 1000 keys', () => {
  it('is shown, and found by its secret, with as many store calls as one of 10', async () => {
    expect(await callsOfOne()).toEqual(ofOneOfTen);
    expect(ofOneOfTen.detail.postgres).toBeGreaterThan(0);
    expect(ofOneOfTen.found.postgres).toBeGreaterThan(0);
  });
});
