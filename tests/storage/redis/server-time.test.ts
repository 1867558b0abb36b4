import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LuaScript } from '../../../src/storage/redis/lua-script.ts';
import { CHANGES_CHANNEL } from '../../../src/storage/redis/redis-key-names.ts';
import { testRedisUrl } from '../../support/stores.ts';

const SCRIPTS = '../../../src/storage/redis';
const MINUTE_MS = 60_000;

let redis: Redis;
beforeAll(() => {
  redis = new Redis(testRedisUrl());
});
afterAll(() => redis.disconnect());

/** By the server's clock. */
async function nowMs(): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

function run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
  return new LuaScript(new URL(`${SCRIPTS}/${script}.lua`, import.meta.url)).runWithKeys(redis, keys, args);
}

describe('the time until cached rejections have ended', () => {
  it.each([
    ['retireKey-1', 'changes/retireKey-1', '1.0', ['5000']],
    ['publishVersion-n', 'changes/publishVersion-n', '*', ['5000', '5000', '2.0', '2.0', '2.0', '2.0']],
    ['clearWindows-n', 'counters/clearWindows-n', '1.0', [CHANGES_CHANNEL, randomUUID()]],
  ])('is to the millisecond in the reply of %s', async (_name, script, version, args) => {
    const key = `tg:{${randomUUID()}}:version`;
    const others = ['customers', 'closed', 'window'].map((name) => `${key}:${name}`);
    const keys = script.endsWith('-n') ? [key, ...others] : [key];
    const before = await nowMs();
    await redis.set(key, `${version} ${before + MINUTE_MS}`, 'PX', MINUTE_MS);
    const leftMs = await run(script, keys, args);
    const passedMs = (await nowMs()) - before;
    expect(leftMs).toBeLessThanOrEqual(MINUTE_MS);
    expect(leftMs).toBeGreaterThanOrEqual(MINUTE_MS - passedMs);
    await redis.set(key, `${version} ${before - 1}`, 'PX', MINUTE_MS);
    expect(await run(script, keys, args)).toBe(0);
    await redis.del(key);
  });
});

describe('the live replicas', () => {
  it('are those that were counted recently, by the clock of the server', async () => {
    const key = `tg:{${randomUUID()}}:replicas`;
    const now = await nowMs();
    await redis.zadd(key, now - 2 * MINUTE_MS, 'gone', now - MINUTE_MS / 2, 'live');
    expect(await run('decisions/countReplicas-1', [key], ['this', String(MINUTE_MS)])).toBe(2);
    expect(await redis.zrange(key, '0', '-1')).toEqual(['live', 'this']);
    expect(Number(await redis.zscore(key, 'this'))).toBeGreaterThanOrEqual(now);
    expect(Number(await redis.zscore(key, 'this'))).toBeLessThanOrEqual(await nowMs());
    expect(await redis.pttl(key)).toBeGreaterThan(0);
    await redis.del(key);
  });
});
