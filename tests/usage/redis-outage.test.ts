import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { expectedUsage, mix } from './support/expected-usage.ts';
import { openRedisUsage, recordingOver, takeAll } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

describe('a replica whose Redis fails', () => {
  let world: UsageWorld;
  beforeAll(async () => {
    world = await createUsageWorld();
  });
  afterAll(() => world.close());

  it('counts each request once although replies of Redis get lost', async () => {
    const keyIds = await world.newKeys(3);
    const relay = await TcpRelay.start(world.redis.port);
    const { live, close } = await openRedisUsage(relay.urlOf(world.redis.url), { timeoutMs: 500 });
    const { buffer, writer } = recordingOver({ ...world, live });
    try {
      const requests = mix(0, 3000, keyIds);
      for (const [index, request] of requests.entries()) {
        buffer.record(request);
        if (index === 0) await writer.write();
        if (index % 300 !== 299) continue;
        relay.loseReply();
        expect(await writer.write()).toBe(false);
        // Half of the time the counts have moved on before the write is made again.
        if (index % 600 === 299) await world.flushAll();
        await until(() => writer.write());
      }
      for (const keyId of keyIds) {
        expect(await world.stored.read(keyId)).toEqual(expectedUsage(keyId, requests));
      }
    } finally {
      await close();
      await relay.stop();
    }
  });

  it('counts each request once although Redis stands still and then goes on', async () => {
    const keyIds = await world.newKeys(3);
    const { live, close } = await openRedisUsage(world.redis.url, { timeoutMs: 500 });
    const { buffer, writer } = recordingOver({ ...world, live });
    const requests = mix(0, 3000, keyIds);
    for (const request of requests.slice(0, 1000)) buffer.record(request);
    await writer.write();
    for (const request of requests.slice(1000, 2000)) buffer.record(request);
    world.redis.pause();
    const writing = writer.write();
    expect(await writing).toBe(false);
    for (const request of requests.slice(2000)) buffer.record(request);
    world.redis.resume();
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    await close();
    expect(writer.stats.writesUnknown).toBeGreaterThan(0);
    for (const keyId of keyIds) {
      expect(await world.stored.read(keyId)).toEqual(expectedUsage(keyId, requests));
    }
    await world.flushAll();
    for (const keyId of keyIds) {
      expect(await world.stored.read(keyId)).toEqual(expectedUsage(keyId, requests));
    }
  });

  it('counts each request once although connections are cut again and again', async () => {
    const keyIds = await world.newKeys(3);
    const { buffer, writer } = recordingOver(world);
    const requests = mix(0, 5000, keyIds);
    const direct = new Redis(world.redis.url);
    for (const [index, request] of requests.entries()) {
      buffer.record(request);
      if (index % 50 !== 0) continue;
      const writing = writer.write();
      if (index % 250 === 0) await direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await writing;
    }
    direct.disconnect();
    expect(await writer.drain(AbortSignal.timeout(60_000))).toBe(true);
    expect(writer.stats.writesUnknown).toBeGreaterThan(0);
    for (const keyId of keyIds) {
      expect(await world.stored.read(keyId)).toEqual(expectedUsage(keyId, requests));
    }
  });

  it('moves its usage to Postgres although Redis is out of memory', async () => {
    const keyIds = await world.newKeys(3);
    const { buffer, writer } = recordingOver(world);
    const requests = mix(0, 100, keyIds);
    for (const request of requests) buffer.record(request);
    expect(await writer.write()).toBe(true);
    const direct = new Redis(world.redis.url);
    await direct.config('SET', 'maxmemory', '1');
    try {
      await expect(direct.set('more', 'than there is room for')).rejects.toThrow('OOM');
      for (const keyId of keyIds) expect(await takeAll(world.live, keyId)).toHaveLength(1);
      await world.flushAll();
      const held = await direct.keys('tg:{usage-*}:*');
      expect(held.filter((name) => /:(live|batch)$/.test(name))).toEqual([]);
    } finally {
      await direct.config('SET', 'maxmemory', '0');
      direct.disconnect();
    }
    for (const keyId of keyIds) {
      expect(await world.stored.read(keyId)).toEqual(expectedUsage(keyId, requests));
    }
  });

  it('goes on when Redis has forgotten the scripts', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const { buffer, writer } = recordingOver(world);
    const direct = new Redis(world.redis.url);
    for (const request of mix(0, 100, [keyId])) {
      buffer.record(request);
      await direct.script('FLUSH');
      expect(await writer.write()).toBe(true);
    }
    direct.disconnect();
    await world.flushAll();
    expect((await world.stored.read(keyId)).requests).toBe(100);
  });
});
