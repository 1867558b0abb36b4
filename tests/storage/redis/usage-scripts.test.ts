import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LuaScript } from '../../../src/storage/redis/lua-script.ts';
import { testRedisUrl } from '../../support/stores.ts';

const DAY_S = 86_400;
/** More names of writers than this, and those of a day ago are removed. */
const MANY_WRITERS = 64;

const shard = `tg:{${randomUUID()}}`;
const [live, batch, writers, sources] = ['live', 'batch', 'writers', 'sources'].map(
  (name) => `${shard}:${name}`,
) as [string, string, string, string];

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl());
});
afterEach(() => redis.del(live, batch, writers, sources));
afterAll(() => redis.disconnect());

function run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
  const url = new URL(`../../../src/storage/redis/usage/${script}.lua`, import.meta.url);
  return new LuaScript(url).runWithKeys(redis, keys, args);
}

function record(writer: string, sequence: number): Promise<unknown> {
  return run('recordUsage-n', [live, writers, sources], [writer, String(sequence), '', 'here', '\nkone\t1']);
}

/** Fills the hash of writers up to a size with some that wrote recently. */
async function fillWriters(size: number): Promise<void> {
  const [now] = await redis.time();
  for (let n = await redis.hlen(writers); n < size; n += 1)
    await redis.hset(writers, `recent${n}`, `1 ${now}`);
}

describe('a write to the live counts', () => {
  it('begins them with their id, once', async () => {
    await record('one', 1);
    await record('one', 2);
    expect(await redis.lrange(live, 1, -1)).toEqual(['\nkone\t1', '\nkone\t1']);
    expect(await redis.smembers(sources)).toEqual(['here']);
  });

  it('gives an id above the last one, also when the clock went back', async () => {
    const future = 9e15;
    await redis.hset(writers, '#id', String(future));
    await record('one', 1);
    expect(await redis.lindex(live, 0)).toBe(`${future + 1} 0`);
    expect(await redis.hget(writers, '#id')).toBe(String(future + 1));
  });

  it('forgets writers of a day ago with the first new writer beyond many, and only those', async () => {
    await record('one', 1);
    const [now] = await redis.time();
    await redis.hset(writers, 'old', `1 ${Number(now) - 2 * DAY_S}`);
    await fillWriters(MANY_WRITERS - 1);
    await record('two', 1);
    expect([await redis.hlen(writers), await redis.hexists(writers, 'old')]).toEqual([MANY_WRITERS, 1]);
    await redis.hset(writers, 'another', `1 ${now}`);
    await record('one', 2);
    expect(await redis.hexists(writers, 'old')).toBe(1);
    await record('three', 1);
    expect([await redis.hlen(writers), await redis.hexists(writers, 'old')]).toEqual([MANY_WRITERS + 1, 0]);
    expect(await redis.hexists(writers, '#id')).toBe(1);
  });
});

describe('the batch of a shard', () => {
  it('is the live counts and the last write of each writer', async () => {
    await record('one', 7);
    expect(await run('takeUsage-4', [live, batch, writers, sources], ['here'])).toBe(3);
    expect(await redis.lrange(batch, 1, -1)).toEqual(['\nkone\t1', 'wone 7']);
    expect(await redis.exists(live)).toBe(0);
  });

  it('stays as it is while it waits, whatever is recorded meanwhile', async () => {
    await record('one', 1);
    await run('takeUsage-4', [live, batch, writers, sources], ['here']);
    const waiting = await redis.lrange(batch, 0, -1);
    await record('one', 2);
    expect(await run('takeUsage-4', [live, batch, writers, sources], ['here'])).toBe(3);
    expect(await redis.lrange(batch, 0, -1)).toEqual(waiting);
    expect(await redis.llen(live)).toBe(2);
  });

  it('is none without counts, whose data set is then no source', async () => {
    await redis.sadd(sources, 'here', 'there');
    expect(await run('takeUsage-4', [live, batch, writers, sources], ['here'])).toBe(0);
    expect(await redis.smembers(sources)).toEqual(['there']);
  });
});

describe('the counts of a key', () => {
  it('are all its slices, however many one write has, also of a name with signs of patterns', async () => {
    const text = '\nka.-+b\t1\n\nkother\t1\nka.-+b\t2\nkax-+b\t3';
    await redis.rpush(live, '1 0', text);
    const reply = await run('readUsage-2', [live, batch], ['a.-+b']);
    expect(reply).toEqual([[], ['1 0', '\nka.-+b\t1\n', '\nka.-+b\t2']]);
  });
});

describe('the name of a data set', () => {
  it('is that of the process and of its replication history', async () => {
    const info = `${await redis.info('server')}${await redis.info('replication')}`;
    const [process, history] = [/run_id:(\w{16})/, /master_replid:(\w{16})/].map(
      (part) => part.exec(info)?.[1],
    );
    expect(await run('identifyServer-1', [sources], [])).toBe(`${process}-${history}`);
  });
});
