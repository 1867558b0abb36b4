import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { hashSlotOf } from '../../src/storage/redis/decisions/hash-slot.ts';
import type { OpenRedis } from '../../src/storage/redis/open-redis.ts';
import { burst } from '../support/burst.ts';
import { decide, newKeyId, openReplica, quota, subject } from '../support/limiter-stores.ts';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';
import { type RedisFleet, startRedisFleet } from './support/redis-fleet.ts';

/** Silence after which the others replace a primary, when one dies. */
const FAILOVER_MS = 1500;

let cluster: RedisCluster;
const replicas: OpenRedis[] = [];

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterEach(async () => {
  for (const replica of replicas.splice(0)) await replica.close();
});
afterAll(() => cluster?.stop());

async function startReplica(): Promise<OpenRedis> {
  const replica = openReplica(cluster.url, 'cluster', { timeoutMs: 5000 });
  replicas.push(replica);
  expect(await replica.waitUntilReady(20_000)).toBe(true);
  await until(() => replica.changes.isSubscribed);
  return replica;
}

/** Moves the slot of a key round the primaries, again and again, until stopped. `reach` waits for as many moves. */
function moveAround(keyId: string): { reach(count: number): Promise<void>; stop(): Promise<void> } {
  const slot = hashSlotOf(keyId);
  let isStopped = false;
  let moves = 0;
  const moving = (async () => {
    while (!isStopped) {
      const to = cluster.primaries[moves % cluster.primaries.length];
      if (to !== undefined) await cluster.moveSlot(slot, to);
      moves += 1;
    }
  })();
  return {
    reach: (count) => until(() => moves >= count),
    stop: () => {
      isStopped = true;
      return moving;
    },
  };
}

describe('in a Redis Cluster of three primaries', () => {
  it('the slot of a key is the one that the servers say', async () => {
    for (let time = 0; time < 50; time += 1) {
      const keyId = newKeyId();
      expect(await cluster.primaries[0]?.direct.cluster('KEYSLOT', `tg:{${keyId}}:window:main:3600000`)).toBe(
        hashSlotOf(keyId),
      );
    }
  });

  it('keys are spread over all of them, and each is one call', async () => {
    const replica = await startReplica();
    await replica.replicas.stop();
    for (const { direct } of cluster.primaries) await direct.config('RESETSTAT');
    await Promise.all(Array.from({ length: 300 }, () => decide(replica.limiter, subject(newKeyId()))));
    const calls = await Promise.all(
      cluster.primaries.map(async ({ direct }) =>
        Number(
          /cmdstat_eval(?:sha)?:calls=(\d+),.*rejected_calls=0,failed_calls=0/.exec(
            await direct.info('commandstats'),
          )?.[1],
        ),
      ),
    );
    expect(calls.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(297);
    for (const count of calls) expect(count).toBeGreaterThan(50);
  });

  it('limits are exact over several replicas while the slot of the key is on the move', async () => {
    const limiters = [await startReplica(), await startReplica()].map(({ limiter }) => limiter);
    const keyId = newKeyId();
    const asked = subject(keyId, { quota: quota(1500, 'hour') });
    const moving = moveAround(keyId);
    const kinds: Record<string, number> = {};
    const asking = async (index: number): Promise<void> => {
      for (let time = 0; time < 25; time += 1) {
        const limiter = limiters[index % 2];
        if (limiter === undefined) throw new Error('no limiter');
        const { kind } = await decide(limiter, asked);
        kinds[kind] = (kinds[kind] ?? 0) + 1;
      }
    };
    try {
      for (let part = 1; part <= 4; part += 1) {
        await Promise.all(Array.from({ length: 30 }, (_, index) => asking(index)));
        await moving.reach(part);
      }
    } finally {
      await moving.stop();
    }
    expect(kinds).toEqual({ allowed: 1500, limited: 1500 });
  });

  it('a lost subscription is noticed, and goes on at another server', async () => {
    const replica = await startReplica();
    let resets = 0;
    replica.changes.onReset(() => {
      resets += 1;
    });
    const changed: string[] = [];
    replica.changes.onChange((keyId) => changed.push(keyId));
    for (const { direct } of cluster.primaries) await direct.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until(() => resets === 2 && replica.changes.isSubscribed);
    await replica.versions.retire('key_moved');
    await until(() => changed.includes('key_moved'));
  });
});

describe('gateways over a Redis Cluster', () => {
  let fleet: RedisFleet;
  beforeAll(async () => {
    const settings = { REDIS_URL: cluster.url, REDIS_MODE: 'cluster', REDIS_TIMEOUT_MS: '5000' };
    fleet = await startRedisFleet([settings, settings]);
  });
  afterAll(() => fleet?.stop());

  const degraded = async (): Promise<number> => {
    const counts = await Promise.all(
      fleet.replicas.map(({ opsUrl }) =>
        metric(opsUrl, 'tollgate_limiter_decisions_total', 'mode="degraded"'),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };

  it('allow exactly the limit and record every request while a slot moves', async () => {
    await fleet.admin.makePlan('exact', 700, 'hour');
    const { id, secret } = await fleet.admin.makeKey('exact', 'exact');
    const urls = fleet.replicas.map(({ url }) => url);
    const moving = moveAround(id);
    const statuses: Record<number, number>[] = [];
    try {
      for (let part = 1; part <= 4; part += 1) {
        statuses.push(await burst(urls, { secret, requests: 350, inFlight: 40 }));
        await moving.reach(part);
      }
    } finally {
      await moving.stop();
    }
    expect({ statuses, degraded: await degraded() }).toEqual({
      statuses: [{ 200: 350 }, { 200: 350 }, { 429: 350 }, { 429: 350 }],
      degraded: 0,
    });
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 1400);
  });

  it('find the server that takes over when a primary dies, without a restart', async () => {
    await fleet.admin.makePlan('room', 1_000_000, 'hour');
    const { id, secret } = await fleet.admin.makeKey('survivor', 'room');
    const urls = fleet.replicas.map(({ url }) => url);
    const primary = await cluster.ownerOf(hashSlotOf(id));
    const replica = await cluster.addReplica(primary);
    await replica.direct.readonly();
    expect(await burst(urls, { secret, requests: 200, inFlight: 10 })).toEqual({ 200: 200 });
    await until(async () => Number(await replica.direct.get(`tg:{${id}}:window:main:3600000`)) === 200);
    for (const { direct } of [...cluster.primaries, replica]) {
      await direct.config('SET', 'cluster-node-timeout', FAILOVER_MS);
    }
    primary.server.kill('SIGKILL');
    await until(async () => {
      const responses = await Promise.all(
        urls.map((url) => fetch(url, { headers: { authorization: `Bearer ${secret}` } })),
      );
      return responses.every(({ headers }) => headers.get('x-ratelimit-remaining') !== null);
    });
    expect(Number(await replica.direct.get(`tg:{${id}}:window:main:3600000`))).toBeGreaterThanOrEqual(202);
  });
});
