import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { windowEndMs } from '../../../src/limiter/period.ts';
import { periodKey, versionKey, windowKey } from '../../../src/storage/redis/key-names.ts';
import type { OpenRedis } from '../../../src/storage/redis/open-redis.ts';
import { decide, newKeyId, openReplica, quota, subject } from '../../support/limiter-stores.ts';
import { testRedisUrl } from '../../support/stores.ts';

const ADMIT_SCRIPT = new URL('../../../src/storage/redis/lua/admitRequest-3.lua', import.meta.url);

describe('the rate limiter in Redis', () => {
  let replica: OpenRedis;
  let direct: Redis;

  beforeAll(async () => {
    replica = openReplica(testRedisUrl());
    direct = new Redis(testRedisUrl());
    await replica.waitUntilReady(10_000);
  });
  afterAll(async () => {
    direct.disconnect();
    await replica.close();
  });

  it('ends calendar windows at the instant that windowEndMs names', async () => {
    const script = await readFile(ADMIT_SCRIPT, 'utf8');
    const functions = /^[\s\S]*?(?=^local time)/m.exec(script)?.[0];
    if (functions === undefined) throw new Error('the script has no body');
    const endsInLua = `${functions}
      local ends = {}
      for index = 1, #ARGV, 2 do ends[#ends + 1] = decimal(windowEndMs(tonumber(ARGV[index]), ARGV[index + 1])) end
      return ends`;
    const opened = fc.oneof(
      fc.integer({ min: 0, max: Date.UTC(2400, 0) }),
      fc
        .tuple(
          fc.integer({ min: 1970, max: 2400 }),
          fc.integer({ min: 0, max: 11 }),
          fc.integer({ min: 28, max: 31 }),
        )
        .map(([year, month, day]) => Date.UTC(year, month, day, 23, 59, 59, 999)),
    );
    const periods = fc.constantFrom(
      ...Array.from({ length: 12 }, (_, index) => quota(1, `${index + 1} months`).period),
      quota(1, 'second').period,
      quota(1, '366 days').period,
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(opened, periods), { minLength: 100, maxLength: 200 }),
        async (windows) => {
          const args = windows.flatMap(([openedAtMs, period]) => [String(openedAtMs), period.token]);
          const ends = await direct.eval(endsInLua, 0, ...args);
          expect(ends).toEqual(
            windows.map(([openedAtMs, period]) => String(windowEndMs(openedAtMs, period))),
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  it('gives all that it stores an end', async () => {
    const keyId = newKeyId();
    await decide(replica.limiter, subject(keyId));
    for (const name of [versionKey(keyId), windowKey(keyId), periodKey(keyId)]) {
      expect(await direct.pttl(name)).toBeGreaterThan(0);
    }
    expect(await direct.pexpiretime(periodKey(keyId))).toBe(await direct.pexpiretime(windowKey(keyId)));
    await replica.versions.announce([keyId]);
    expect(await direct.get(versionKey(keyId))).toBe('*');
    expect(await direct.pttl(versionKey(keyId))).toBeGreaterThan(0);
    expect(await direct.pttl(versionKey(keyId))).toBeLessThanOrEqual(30_000);
    await replica.versions.retire(keyId);
    expect(await direct.get(versionKey(keyId))).toBe('-');
    expect(await direct.pttl(versionKey(keyId))).toBeGreaterThan(0);
    expect(await direct.exists(windowKey(keyId), periodKey(keyId))).toBe(0);
  });

  it('heals a window that lost its expiry, admitting or denying', async () => {
    for (const limit of [1, 5]) {
      const asked = subject(newKeyId(), { quota: quota(limit, 'hour') });
      await decide(replica.limiter, asked);
      await direct.persist(windowKey(asked.keyId));
      await direct.persist(periodKey(asked.keyId));
      const peeked = await replica.limiter.peek(asked.keyId, quota(limit, 'hour'));
      expect(peeked).toMatchObject({ used: 1, resetAtMs: peeked.nowMs + 3_600_000 });

      const decision = await decide(replica.limiter, asked);
      expect(decision.kind).toBe(limit === 1 ? 'denied' : 'admitted');
      if (!('resetAtMs' in decision)) throw new Error('no reset');
      expect(decision.resetAtMs).toBe(decision.nowMs + 3_600_000);
      expect(await direct.pexpiretime(windowKey(asked.keyId))).toBe(decision.resetAtMs);
      expect(await direct.pexpiretime(periodKey(asked.keyId))).toBe(decision.resetAtMs);
    }
  });

  it('opens a new window where the stored one makes no sense', async () => {
    const asked = subject(newKeyId(), { quota: quota(5, 'hour') });
    await decide(replica.limiter, asked);
    await direct.set(windowKey(asked.keyId), 'nonsense', 'KEEPTTL');
    expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'admitted', remaining: 4 });
    await direct.del(windowKey(asked.keyId));
    await direct.rpush(windowKey(asked.keyId), 'a list');
    expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'admitted', remaining: 4 });
    await direct.del(periodKey(asked.keyId));
    expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'admitted', remaining: 4 });
  });

  it('decides exactly when the server forgot its scripts in the middle of a pipeline', async () => {
    const asked = subject(newKeyId(), { quota: quota(20, 'hour') });
    await decide(replica.limiter, asked);
    await direct.script('FLUSH');
    const decisions = await Promise.all(Array.from({ length: 50 }, () => decide(replica.limiter, asked)));
    expect(decisions.filter(({ kind }) => kind === 'admitted')).toHaveLength(19);
    expect(decisions.filter(({ kind }) => kind === 'denied')).toHaveLength(31);
  });

  it('finds every copy stale after the server was emptied, until a fresh one is installed', async () => {
    const asked = subject(newKeyId());
    await decide(replica.limiter, asked);
    await direct.flushdb();
    expect(await decide(replica.limiter, { ...asked, fresh: false })).toEqual({ kind: 'stale' });
    expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'admitted', remaining: 9 });
    expect(await decide(replica.limiter, { ...asked, fresh: false })).toMatchObject({ kind: 'admitted' });
  });

  it('adds what was admitted elsewhere to the open window, opens one, and leaves another period alone', async () => {
    const keyId = newKeyId();
    const hourly = quota(5, 'hour');
    await replica.countRestorer.restore({ keyId, quota: hourly, count: 2 });
    const opened = await replica.limiter.peek(keyId, hourly);
    expect(opened.used).toBe(2);
    expect(await direct.pttl(windowKey(keyId))).toBeGreaterThan(0);
    await replica.countRestorer.restore({ keyId, quota: hourly, count: 4 });
    expect(await replica.limiter.peek(keyId, hourly)).toMatchObject({ used: 6, resetAtMs: opened.resetAtMs });
    expect((await decide(replica.limiter, subject(keyId, { quota: hourly }))).kind).toBe('denied');
    await replica.countRestorer.restore({ keyId, quota: quota(5, 'day'), count: 4 });
    expect(await replica.limiter.peek(keyId, hourly)).toMatchObject({ used: 6 });
  });
});
