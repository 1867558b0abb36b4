import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { systemClock } from '../../src/platform/clock.ts';
import { closeRedis } from '../../src/storage/redis/redis-connection.ts';
import { RedisLiveUsage } from '../../src/storage/redis/usage/redis-live-usage.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { sliceOf } from './support/sample-usage.ts';
import { connectForUsage, expireLeases, takeAll, writeSlices } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

/** More than are read of a batch at a time. */
const WRITES = 300;

describe('a flusher that stands still for longer than its lease, after it took a shard', () => {
  let world: UsageWorld;
  let redis: Redis;
  beforeEach(async () => {
    world = await createUsageWorld();
    redis = (await connectForUsage(world.redis.url)) as Redis;
  });
  afterEach(async () => {
    await closeRedis(redis);
    await world.close();
  });

  /** Takes the key's shard, and stands still before it reads what it took. `goOn` resolves with that. */
  async function takeAndStandStill(keyId: string) {
    const [standing, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const lrange = redis.lrange.bind(redis);
    redis.lrange = async (...range: Parameters<Redis['lrange']>) => {
      standing.resolve();
      await going.promise;
      return lrange(...range);
    };
    const taken = new RedisLiveUsage(redis, systemClock).take(shardOf(keyId));
    await standing.promise;
    await expireLeases(world.redis.url);
    return {
      goOn: () => {
        going.resolve();
        return taken;
      },
    };
  }

  async function move(keyId: string): Promise<void> {
    for (const batch of await takeAll(world.live, keyId)) {
      await world.history.apply(batch);
      await world.live.drop(batch);
    }
  }

  it('loses nothing of the batch that has taken the place of its own', async () => {
    const [keyId = ''] = await world.newKeys(1);
    await writeSlices(world.live, sliceOf(keyId, {}));
    const late = await takeAndStandStill(keyId);
    await move(keyId);
    for (let count = 0; count < WRITES; count += 1) await writeSlices(world.live, sliceOf(keyId, {}));
    await takeAll(world.live, keyId);

    for (const batch of (await late.goOn()) ?? []) {
      await world.history.apply(batch);
      await world.live.drop(batch);
    }
    await world.flushAll();
    expect(await world.requestsInPostgres()).toBe(1 + WRITES);
  });

  it('finds nothing where its own was moved and nothing came since', async () => {
    const [keyId = ''] = await world.newKeys(1);
    await writeSlices(world.live, sliceOf(keyId, {}));
    const late = await takeAndStandStill(keyId);
    await move(keyId);
    expect(await late.goOn()).toEqual([]);
  });

  it('does not renew the lock that another one has by now', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const shard = shardOf(keyId);
    const [late, other] = [new RedisLiveUsage(redis, systemClock), new RedisLiveUsage(redis, systemClock)];
    await world.live.release(shard, 0);
    expect(await late.take(shard)).toBeDefined();
    expect(await late.renew(shard)).toBe(true);
    await late.release(shard, 0);
    expect(await late.renew(shard)).toBe(false);
    expect(await other.take(shard)).toBeDefined();
    expect(await late.renew(shard)).toBe(false);
    expect(await other.renew(shard)).toBe(true);
    await other.release(shard, 0);
  });
});

describe('the instant since when the oldest counts wait', () => {
  it('is known although a flusher takes them between two reads', async () => {
    const world = await createUsageWorld();
    const redis = (await connectForUsage(world.redis.url)) as Redis;
    try {
      const [keyId = ''] = await world.newKeys(1);
      await writeSlices(world.live, sliceOf(keyId, {}));
      const lindex = redis.lindex.bind(redis);
      let reads = 0;
      redis.lindex = async (...element: Parameters<Redis['lindex']>) => {
        const head = await lindex(...element);
        reads += 1;
        if (reads === 1) await takeAll(world.live, keyId);
        return head;
      };
      const oldestAtMs = await new RedisLiveUsage(redis, systemClock).oldestAtMs();
      expect(reads).toBe(2);
      expect(oldestAtMs).toBe(await world.live.oldestAtMs());
      expect(oldestAtMs).toBeDefined();
    } finally {
      await closeRedis(redis);
      await world.close();
    }
  });
});
