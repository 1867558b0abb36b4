import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { hashSlotOf } from '../../../src/storage/redis/decisions/hash-slot.ts';
import type { RedisLiveUsage } from '../../../src/storage/redis/usage/redis-live-usage.ts';
import { SHARDS, shardOf } from '../../../src/usage/shards.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { testRedisUrl } from '../../support/stores.ts';
import { TcpRelay } from '../../support/tcp-relay.ts';
import { addedUp, sliceOf } from '../../usage/support/sample-usage.ts';
import {
  expireLeases,
  newKeyId,
  openRedisUsage,
  takeAll,
  writeSlices,
} from '../../usage/support/usage-stores.ts';

describe('the calls of live usage', () => {
  let relay: TcpRelay;
  let live: RedisLiveUsage;
  let close: () => Promise<void>;
  let sent = '';
  beforeAll(async () => {
    const url = testRedisUrl();
    await expireLeases(url);
    relay = await TcpRelay.start(Number(new URL(url).port), { onSent: (bytes) => (sent += bytes) });
    ({ live, close } = await openRedisUsage(relay.urlOf(url)));
    // Redis learns the scripts, and the replica the data set.
    await write([0], 1);
  });
  afterAll(async () => {
    await close();
    await relay.stop();
  });
  beforeEach(() => {
    sent = '';
  });

  /** Each time as a new writer, the same into each of the shards: keys with as many endpoints, whose names have 200 characters. */
  async function write(shards: readonly number[], endpoints: number, keys = 1): Promise<void> {
    const named = Array.from({ length: endpoints }, (_, index) => ({
      endpoint: `/${'path'.repeat(50)}${index}`,
    }));
    const recorded = Array.from({ length: keys }, () => sliceOf(newKeyId(), ...named));
    const outcomes = await live.write(
      shards.map((shard) => ({ shard, writer: `test-${randomUUID()}`, sequence: 1, previous: 0, recorded })),
    );
    expect(new Set(outcomes)).toEqual(new Set(['written']));
  }

  const count = (command: string) => sent.toLowerCase().split(`\r\n${command}\r\n`).length - 1;

  it('are one for the writes to all shards', async () => {
    await write(
      Array.from({ length: SHARDS }, (_, shard) => shard),
      1,
    );
    expect(count('evalsha')).toBe(1);
  });

  it('write nothing to a server that does not say which data set it has', async () => {
    const cluster = await startRedisCluster(1);
    const usage = await openRedisUsage(cluster.url, { mode: 'cluster' });
    try {
      await cluster.primaries[0]?.direct.call('ACL', 'SETUSER', 'default', '-info');
      expect(await writeSlices(usage.live, sliceOf(newKeyId(), { endpoint: '/' }))).toBe('unknown');
    } finally {
      await usage.close();
      await cluster.stop();
    }
  });

  it('lose nothing when they compact a shard whose slot is about to move', async () => {
    const cluster = await startRedisCluster(2);
    const usage = await openRedisUsage(cluster.url, { mode: 'cluster' });
    try {
      const keyId = newKeyId();
      const slices = ['/a', '/b', '/c'].map((endpoint) => sliceOf(keyId, { endpoint }));
      for (const slice of slices) await writeSlices(usage.live, slice);
      const slot = hashSlotOf(`usage-${shardOf(keyId)}`);
      const from = await cluster.ownerOf(slot);
      const to = cluster.primaries.find((primary) => primary !== from);
      if (to === undefined) throw new Error('there is no other primary');
      await cluster.beginMove(slot, to);
      await usage.live.compact(shardOf(keyId));
      await cluster.moveSlot(slot, to);
      expect((await takeAll(usage.live, keyId)).flatMap((batch) => batch.slices)).toEqual(addedUp(slices));
    } finally {
      await usage.close();
      await cluster.stop();
    }
  });

  it('are several where the writes are longer than half a million characters', async () => {
    await write([1, 2, 3], 1000);
    expect(count('evalsha')).toBe(2);
  });

  it('compact a shard once it has grown, and not again with the next write', async () => {
    const shard = 4;
    await write([shard], 6000);
    expect(count('lrange')).toBeGreaterThan(0);
    sent = '';
    await write([shard], 1);
    expect(count('lrange')).toBe(0);
  });

  it('compact a shard that stays long only when it has doubled', async () => {
    const shard = 5;
    await write([shard], 100, 80);
    expect(count('lrange')).toBeGreaterThan(0);
    sent = '';
    await write([shard], 100, 60);
    expect(count('lrange')).toBe(0);
    await write([shard], 100, 60);
    expect(count('lrange')).toBeGreaterThan(0);
  });

  it('compact a shard by what came since it was moved to the history', async () => {
    const shard = 6;
    const move = async () => {
      for (const batch of (await live.take(shard)) ?? []) await live.drop(batch);
      await live.release(shard, 0);
      sent = '';
    };
    await write([shard], 3000);
    await move();
    await write([shard], 3000);
    expect(count('lrange')).toBe(0);
    await write([shard], 100, 80);
    await move();
    await write([shard], 100, 60);
    expect(count('lrange')).toBeGreaterThan(0);
  });
});
