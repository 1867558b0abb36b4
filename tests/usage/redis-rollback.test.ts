import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { systemClock } from '../../src/platform/clock.ts';
import type { RedisLiveUsage } from '../../src/storage/redis/usage/redis-live-usage.ts';
import { usageSourcesKeyName, usageWritersKeyName } from '../../src/storage/redis/usage/usage-key-names.ts';
import type { LiveUsageWriter } from '../../src/usage/live-usage-writer.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { StoredUsage } from '../../src/usage/stored-usage.ts';
import { UsageFlusher } from '../../src/usage/usage-flusher.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { onRedis } from '../support/on-redis.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';
import { completed, sliceOf } from './support/sample-usage.ts';
import { expireLeases, openRedisUsage, recordingOver, silent, writeSlices } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

describe('usage when Redis goes back in time', () => {
  let world: UsageWorld;
  let directory: string;
  let redis: RedisServer;
  beforeAll(async () => {
    world = await createUsageWorld();
    directory = await mkdtemp(join(tmpdir(), 'tollgate-rollback-'));
    redis = await startRedisServer(['--dir', directory]);
  });
  afterAll(async () => {
    await redis.stop();
    await world.close();
    await rm(directory, { recursive: true, force: true });
  });

  /** A replica that writes and moves when the test says so, over Redis or what is in front of it. */
  async function startReplica(keyId: string, url = redis.url) {
    const { live, close } = await openRedisUsage(url, { timeoutMs: 500 });
    const { history } = world;
    const clock = new ManualClock(Date.now());
    const { buffer, writer } = recordingOver({ live, history }, { clock });
    const flusher = new UsageFlusher({ live, history, clock: systemClock, log: silent, intervalMs: 0 });
    const stored = new StoredUsage(live, history);
    return {
      live,
      clock,
      writer,
      flusher,
      close,
      record: (requests: number) => {
        for (let number = 0; number < requests; number += 1) buffer.record(completed({ keyId }));
      },
      write: () => until(() => writer.write()),
      flush: async () => {
        await expireLeases(redis.url);
        await until(() => flusher.flush());
      },
      requests: async () => (await stored.read(keyId)).requests,
    };
  }

  const command = (...words: readonly [string, ...string[]]) =>
    onRedis(redis.url, (direct) => direct.call(...words));

  /** Ends Redis without a word and starts it again from the last snapshot. */
  async function restartFromSnapshot(replica: { readonly live: RedisLiveUsage }): Promise<void> {
    redis.kill('SIGKILL');
    redis = await startRedisServer(['--dir', directory, '--port', String(redis.port)]);
    await until(() =>
      replica.live.oldestAtMs().then(
        () => true,
        () => false,
      ),
    );
  }

  it.each([
    ['was live', 'is live', async () => {}],
    ['was live', 'was moved since', (replica: Replica) => replica.flush()],
  ])('counts nothing twice where what %s in the snapshot %s', async (_was, _is, since) => {
    const [keyId = ''] = await world.newKeys(1);
    const replica = await startReplica(keyId);
    try {
      replica.record(50);
      await replica.write();
      await command('SAVE');
      replica.record(10);
      await replica.write();
      await since(replica);
      const before = await replica.requests();
      expect(before).toBe(60);
      await restartFromSnapshot(replica);
      const moved = (await world.history.read(keyId)).totals.requests;
      expect(await replica.requests()).toBe(Math.max(moved, 50));
      replica.record(7);
      await replica.write();
      expect(replica.writer.stats.rollbacks).toBe(1);
      for (const _ of ['before the move', 'after it', 'after another']) {
        expect(await replica.requests()).toBe(Math.max(moved, 50) + 7);
        await replica.flush();
      }
      expect(replica.flusher.stats.batchesOutdated + replica.flusher.stats.failures).toBe(0);
    } finally {
      await replica.close();
    }
  });

  it('is told from a writer that Redis forgot because it wrote nothing for a day', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const replicas = [await startReplica(keyId), await startReplica(keyId)] as const;
    const [idle, other] = replicas;
    try {
      idle.record(3);
      await idle.write();
      idle.clock.advance(86_400_000);
      const direct = new Redis(redis.url);
      const writers = usageWritersKeyName(shardOf(keyId));
      const entries = await direct.hgetall(writers);
      for (const [writer, entry] of Object.entries(entries))
        if (writer !== '#id') await direct.hset(writers, writer, `${entry.split(' ')[0]} 1`);
      for (let i = 0; i < 64; i += 1) await direct.hset(writers, `earlier-${i}`, '1 1');
      direct.disconnect();
      other.record(2);
      await other.write();
      idle.record(1);
      await idle.write();
      expect(idle.writer.stats.rollbacks).toBe(0);
      expect(await idle.requests()).toBe(6);
    } finally {
      for (const replica of replicas) await replica.close();
    }
  });

  it('counts nothing twice when a moved batch is pending again', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const replica = await startReplica(keyId);
    try {
      replica.record(20);
      await replica.write();
      await replica.flush();
      replica.record(30);
      await replica.write();
      await command('SAVE');
      await replica.flush();
      replica.record(5);
      await replica.write();
      await replica.flush();
      expect(await replica.requests()).toBe(55);
      await restartFromSnapshot(replica);
      for (const _ of ['at once', 'after a move', 'after another']) {
        expect(await replica.requests()).toBe(55);
        await replica.flush();
      }
      expect(replica.flusher.stats.batchesOutdated).toBe(1);
      replica.record(1);
      await replica.write();
      await replica.flush();
      expect(await replica.requests()).toBe(56);
    } finally {
      await replica.close();
    }
  });

  /** A further write without a reply, on a connection that knows the data set and the scripts. */
  async function loseAnotherReply(replica: Writing, relay: TcpRelay): Promise<void> {
    const [keyId = ''] = await world.newKeys(1);
    await until(async () => (await writeSlices(replica.live, sliceOf(keyId, {}))) === 'written');
    relay.loseReply();
    expect(await replica.writer.write()).toBe(false);
  }

  it('counts a first write once, though its reply and then all data are lost', async () => {
    const [keyId = '', another = ''] = await world.newKeys(2);
    const relay = await TcpRelay.start(redis.port);
    const replica = await startReplica(keyId, relay.urlOf(redis.url));
    const other = await startReplica(keyId);
    try {
      // By another writer: the connection then knows the data set and the script.
      await writeSlices(replica.live, sliceOf(another, {}));
      replica.record(50);
      relay.loseReply();
      expect(await replica.writer.write()).toBe(false);
      await other.flush();
      await command('FLUSHALL');
      await replica.write();
      for (const _ of ['at once', 'after a move']) {
        expect(await other.requests()).toBe(50);
        await other.flush();
      }
    } finally {
      await replica.close();
      await other.close();
      await relay.stop();
    }
  });

  it.each<[string, (other: Replica) => Promise<unknown>, typeof loseAnotherReply]>([
    ['lost all its data', () => command('FLUSHALL'), async () => {}],
    ['was restarted from an older snapshot', restartFromSnapshot, async () => {}],
    ['was so restarted and the next reply is lost, too', restartFromSnapshot, loseAnotherReply],
  ])('counts once what was moved before its reply was lost and Redis %s', async (_what, lose, loseMore) => {
    const [keyId = ''] = await world.newKeys(1);
    const relay = await TcpRelay.start(redis.port);
    const replica = await startReplica(keyId, relay.urlOf(redis.url));
    const other = await startReplica(keyId);
    try {
      replica.record(1);
      await replica.write();
      await command('SAVE');
      replica.record(49);
      relay.loseReply();
      expect(await replica.writer.write()).toBe(false);
      await other.flush();
      await lose(other);
      await loseMore(replica, relay);
      await replica.write();
      for (const _ of ['at once', 'after a move', 'after another']) {
        expect(await other.requests()).toBe(50);
        await other.flush();
      }
    } finally {
      await replica.close();
      await other.close();
      await relay.stop();
    }
  });

  it('counts once what is moved while its reply is lost and Redis loses all its data', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const relay = await TcpRelay.start(redis.port);
    const replica = await startReplica(keyId, relay.urlOf(redis.url));
    const other = await startReplica(keyId);
    const locking = await world.records.db.startTransaction().execute();
    try {
      replica.record(1);
      await replica.write();
      replica.record(49);
      relay.loseReply();
      expect(await replica.writer.write()).toBe(false);
      // The move has noted the write and waits for the key.
      await sql`SELECT FROM consumer_keys WHERE id = ${keyId} FOR UPDATE`.execute(locking);
      const moved = other.flush();
      await until(async () => (await waitingForLocks(world.records.db)) === 1);
      await command('FLUSHALL');
      let isWritten = false;
      const written = replica.write().then(() => {
        isWritten = true;
      });
      await until(async () => isWritten || (await waitingForLocks(world.records.db)) === 2);
      await locking.commit().execute();
      await Promise.all([moved, written]);
      for (const _ of ['at once', 'after a move', 'after another']) {
        expect(await other.requests()).toBe(50);
        await other.flush();
      }
    } finally {
      if (!locking.isCommitted) await locking.rollback().execute();
      await replica.close();
      await other.close();
      await relay.stop();
    }
  });

  it('goes to a data set of another name once a flush finds that the role of Redis changed', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const replica = await startReplica(keyId);
    const other = await startRedisServer();
    try {
      const sources = usageSourcesKeyName(shardOf(keyId));
      const written = async () => {
        replica.record(1);
        await replica.write();
        return (await command('SMEMBERS', sources)) as readonly string[];
      };
      const before = await written();
      expect(before).toHaveLength(1);
      // It takes over what the other one has: nothing. The connections to it stay open.
      await command('REPLICAOF', '127.0.0.1', String(other.port));
      await until(async () => String(await command('INFO', 'replication')).includes('master_link_status:up'));
      await command('REPLICAOF', 'NO', 'ONE');
      await until(async () => {
        await replica.flush();
        const names = await written();
        return names.length > 0 && !before.some((name) => names.includes(name));
      });
    } finally {
      await replica.close();
      await other.stop();
    }
  });

  it('writes again what never arrived, although Redis is another one since', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const replica = await startReplica(keyId);
    try {
      replica.record(1);
      await replica.write();
      await replica.flush();
      await command('SAVE');
      redis.pause();
      replica.record(49);
      expect(await replica.writer.write()).toBe(false);
      await restartFromSnapshot(replica);
      await replica.write();
      expect(await replica.requests()).toBe(50);
      await replica.flush();
      expect(await replica.requests()).toBe(50);
      // It has all that it had acknowledged, so nothing says that usage was lost.
      expect(replica.writer.stats.rollbacks).toBe(0);
    } finally {
      await replica.close();
    }
  });
});

type Replica = {
  readonly live: RedisLiveUsage;
  flush(): Promise<void>;
};

type Writing = Pick<Replica, 'live'> & { readonly writer: LiveUsageWriter };
