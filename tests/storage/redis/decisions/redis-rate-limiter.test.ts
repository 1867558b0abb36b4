import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { RejectionCache } from '../../../../src/limiter/guards/rejection-cache.ts';
import { UnreadableCounts } from '../../../../src/limiter/not-counted.ts';
import { windowEndMs } from '../../../../src/limiter/period.ts';
import type { ChangeFeed } from '../../../../src/limiter/record-versions.ts';
import { systemClock } from '../../../../src/platform/clock.ts';
import type { OpenRedis } from '../../../../src/storage/redis/open-redis.ts';
import {
  customersKeyName,
  versionKeyName,
  windowKeyName,
} from '../../../../src/storage/redis/redis-key-names.ts';
import {
  decide,
  isReady,
  newKeyId,
  openReplica,
  peek,
  quota,
  subject,
} from '../../../support/limiter-stores.ts';
import { onRedis } from '../../../support/on-redis.ts';
import { startRedisServer } from '../../../support/redis-server.ts';
import { testRedisUrl } from '../../../support/stores.ts';
import { until } from '../../../support/until.ts';

const DECIDE_SCRIPT = new URL(
  '../../../../src/storage/redis/decisions/decideRequests-n.lua',
  import.meta.url,
);

describe('the rate limiter in Redis', () => {
  let replica: OpenRedis;
  let direct: Redis;

  beforeAll(async () => {
    replica = openReplica(testRedisUrl());
    direct = new Redis(testRedisUrl());
    await until(() => isReady(replica));
  });
  afterAll(async () => {
    direct.disconnect();
    await replica.close();
  });

  it('ends calendar windows at the instant that windowEndMs names', async () => {
    const script = await readFile(DECIDE_SCRIPT, 'utf8');
    const functions = /^ *local DAY_MS = .*$|^ *local calendarEndMs$[\s\S]*?(?=^ *-- Lua writes)/gm;
    const endsInLua = `local match = string.match
      ${script.match(functions)?.join('\n')}
      local ends = {}
      for index = 1, #ARGV, 2 do
        ends[#ends + 1] = string.format('%d', windowEndMs(tonumber(ARGV[index]), ARGV[index + 1]))
      end
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
    for (const name of [versionKeyName(keyId), windowKeyName(keyId, 'main:3600000')]) {
      expect(await direct.pttl(name)).toBeGreaterThan(0);
    }
    await replica.versions.markStale([keyId]);
    expect(await direct.get(versionKeyName(keyId))).toBe('*');
    expect(await direct.pttl(versionKeyName(keyId))).toBeGreaterThan(0);
    expect(await direct.pttl(versionKeyName(keyId))).toBeLessThanOrEqual(30_000);
    await replica.versions.retire([{ keyId, windowNames: ['main:3600000'] }]);
    expect(await direct.get(versionKeyName(keyId))).toBe('-');
    expect(await direct.pttl(versionKeyName(keyId))).toBeGreaterThan(0);
    expect(await direct.exists(windowKeyName(keyId, 'main:3600000'))).toBe(0);
  });

  it('heals a window that lost its expiry, allowing or limiting', async () => {
    for (const limit of [1, 5]) {
      const asked = subject(newKeyId(), { quota: quota(limit, 'hour') });
      await decide(replica.limiter, asked);
      await direct.persist(windowKeyName(asked.keyId, 'main:3600000'));
      const peeked = await peek(replica.counters, asked.keyId, quota(limit, 'hour'));
      expect(peeked).toMatchObject({ used: 1, resetAtMs: peeked.nowMs + 3_600_000 });

      const decision = await decide(replica.limiter, asked);
      expect(decision.kind).toBe(limit === 1 ? 'limited' : 'allowed');
      if (!('nowMs' in decision)) throw new Error('no reset');
      expect(decision.resetAtMs).toBe(decision.nowMs + 3_600_000);
      expect(await direct.pexpiretime(windowKeyName(asked.keyId, 'main:3600000'))).toBe(decision.resetAtMs);
    }
  });

  it('opens a new window where the stored one makes no sense', async () => {
    const asked = subject(newKeyId(), { quota: quota(5, 'hour') });
    await decide(replica.limiter, asked);
    // The last three are numbers to Lua and none to Redis.
    for (const value of ['nonsense', '', '003', '1e0', '1.5']) {
      await direct.set(windowKeyName(asked.keyId, 'main:3600000'), value, 'KEEPTTL');
      expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'allowed', remaining: 4 });
      await direct.set(windowKeyName(asked.keyId, 'main:3600000'), value, 'KEEPTTL');
      expect(await decide(replica.limiter, { ...asked, cost: 2 })).toMatchObject({ remaining: 3 });
    }
    await direct.del(windowKeyName(asked.keyId, 'main:3600000'));
    await direct.rpush(windowKeyName(asked.keyId, 'main:3600000'), 'a list');
    expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'allowed', remaining: 4 });
  });

  it('says that it can not read the counts of a key where an entry has another type, and decides about others', async () => {
    const asked = {
      ...subject(newKeyId(), { quota: quota(5, 'hour', { per: 'customer' }) }),
      customerId: 'one',
    };
    await decide(replica.limiter, asked);
    await direct.del(customersKeyName(asked.keyId));
    await direct.set(customersKeyName(asked.keyId), 'no sorted set');
    const another = () => decide(replica.limiter, subject(newKeyId(), { quota: quota(5, 'hour') }));
    // All of them are one call.
    const [before, unreadable, after] = await Promise.all([
      another(),
      decide(replica.limiter, { ...asked, customerId: 'two' }),
      another(),
    ]);
    expect(unreadable).toEqual({ kind: 'unavailable', cause: expect.any(UnreadableCounts) });
    for (const other of [before, after]) expect(other).toMatchObject({ kind: 'allowed', remaining: 4 });
  });

  it.each([
    ['a limit', quota(5, 'hour')],
    ['no limit', null],
  ])('has a key with %s read again whose version is no text', async (_what, limit) => {
    const asked = subject(newKeyId(), { quota: limit });
    await direct.rpush(versionKeyName(asked.keyId), 'a list');
    expect(await decide(replica.limiter, { ...asked, fresh: false })).toEqual({ kind: 'stale' });
    expect(await decide(replica.limiter, asked)).not.toMatchObject({ kind: 'unavailable' });
    expect(await direct.get(versionKeyName(asked.keyId))).toBe('1.0');
  });

  it('decides exactly when the server forgot its scripts in the middle of a pipeline', async () => {
    const server = await startRedisServer();
    const { limiter, close } = openReplica(server.url);
    try {
      const asked = subject(newKeyId(), { quota: quota(20, 'hour') });
      await until(async () => (await decide(limiter, asked)).kind === 'allowed');
      await onRedis(server.url, (other) => other.script('FLUSH'));
      const decisions = await Promise.all(Array.from({ length: 50 }, () => decide(limiter, asked)));
      expect(decisions.filter(({ kind }) => kind === 'allowed')).toHaveLength(19);
      expect(decisions.filter(({ kind }) => kind === 'limited')).toHaveLength(31);
    } finally {
      await close();
      await server.stop();
    }
  });

  it('finds every snapshot stale after the server was emptied, until one is installed', async () => {
    const asked = subject(newKeyId());
    await decide(replica.limiter, asked);
    await direct.flushdb();
    expect(await decide(replica.limiter, { ...asked, fresh: false })).toEqual({ kind: 'stale' });
    expect(await decide(replica.limiter, asked)).toMatchObject({ kind: 'allowed', remaining: 9 });
    expect(await decide(replica.limiter, { ...asked, fresh: false })).toMatchObject({ kind: 'allowed' });
  });

  it('adds local counts once to the open window or opens one; other periods stay', async () => {
    const keyId = newKeyId();
    const hourly = quota(5, 'hour');
    const resetAtMs = Date.now() + 1_800_000;
    await replica.counters.restore({ keyId, limit: hourly, customerId: '', units: 2, resetAtMs }, 'first');
    const opened = await peek(replica.counters, keyId, hourly);
    // Not an hour from now: clients were informed of this end.
    expect(opened).toMatchObject({ used: 2, resetAtMs: resetAtMs - 1 });
    const more = { keyId, limit: hourly, customerId: '', units: 4, resetAtMs: resetAtMs + 600_000 };
    await replica.counters.restore(more, 'second');
    // The reply to the first time was lost.
    await replica.counters.restore(more, 'second');
    expect(await peek(replica.counters, keyId, hourly)).toMatchObject({
      used: 6,
      resetAtMs: opened.resetAtMs,
    });
    expect((await decide(replica.limiter, subject(keyId, { quota: hourly }))).kind).toBe('limited');
    const daily = quota(5, 'day');
    // The longest window ends with the period, whatever clock the replica had.
    const far = { resetAtMs: Date.now() + 10 * 86_400_000 };
    await replica.counters.restore({ keyId, limit: daily, customerId: '', units: 4, ...far }, 'third');
    expect(await peek(replica.counters, keyId, hourly)).toMatchObject({ used: 6 });
    expect((await peek(replica.counters, keyId, daily)).resetAtMs).toBeLessThan(far.resetAtMs);
    const ended = { keyId, limit: quota(5, 'minute'), customerId: '', units: 4, resetAtMs: Date.now() - 1 };
    await replica.counters.restore(ended, 'fourth');
    expect((await peek(replica.counters, keyId, ended.limit)).used).toBe(0);
  });

  it('adds nothing to a key that was deleted', async () => {
    const keyId = newKeyId();
    await replica.versions.retire([{ keyId }]);
    const units = { limit: quota(5, 'hour'), customerId: '', units: 2, resetAtMs: Date.now() + 3_600_000 };
    await replica.counters.restore({ keyId, ...units }, 'any');
    expect(await direct.exists(windowKeyName(keyId, 'main:3600000'))).toBe(0);
  });

  it('replaces an older version that a failover brought back by the one just read', async () => {
    const keyId = newKeyId();
    for (const [older, newer] of [
      ['9.0', '10.0'],
      ['10.9', '10.10'],
      ['10.10', '11.1'],
    ] as const) {
      await direct.set(versionKeyName(keyId), older, 'PX', 60_000);
      expect((await decide(replica.limiter, subject(keyId, { version: newer }))).kind).toBe('allowed');
      expect(await direct.get(versionKeyName(keyId))).toBe(newer);
      expect((await decide(replica.limiter, subject(keyId, { version: older }))).kind).toBe('allowed');
      expect(await direct.get(versionKeyName(keyId))).toBe(newer);
    }
  });

  describe('after its clock went back by an hour', () => {
    const hourly = quota(5, 'hour');
    const changes: Readonly<Record<string, (keyId: string) => Promise<void>>> = {
      'new version': (keyId) => replica.versions.publishVersion([{ keyId, version: '2.0' }]),
      deletion: (keyId) => replica.versions.retire([{ keyId }]),
      grant: (keyId) => replica.counters.grant({ keyId, limits: [hourly], customerId: '', units: 1 }),
      reset: (keyId) => replica.counters.reset({ keyId, limits: [hourly], customerId: null }),
    };
    it.each(Object.entries(changes))('acknowledges a %s of a key that was limited', async (_name, make) => {
      const keyId = newKeyId();
      const { nowMs } = await peek(replica.counters, keyId, hourly);
      await direct.set(versionKeyName(keyId), `1.0 ${nowMs + 3_600_000}`, 'PX', 60_000);
      await make(keyId);
    });
  });

  describe('with a replica that repeats rejections and receives no change', () => {
    const one = quota(1, 'hour');
    const deaf: ChangeFeed = { onChange: () => {}, onReset: () => {} };

    async function rejected(): Promise<{ keyId: string; ask: () => Promise<string> }> {
      const keyId = newKeyId();
      const cached = new RejectionCache(replica.limiter, { clock: systemClock, changes: deaf });
      const ask = async () => (await decide(cached, subject(keyId, { fresh: false, quota: one }))).kind;
      await decide(cached, subject(keyId, { quota: one }));
      expect(await ask()).toBe('limited');
      expect(await ask()).toBe('limited');
      expect(cached.hits).toBe(1);
      return { keyId, ask };
    }

    const changes: readonly { readonly name: string; readonly make: (keyId: string) => Promise<void> }[] = [
      {
        name: 'change',
        make: async (keyId) => {
          await replica.versions.markStale([keyId]);
          await replica.versions.publishVersion([{ keyId, version: '2.0' }]);
        },
      },
      {
        name: 'change that follows another one before that is acknowledged',
        make: async (keyId) => {
          await replica.versions.markStale([keyId]);
          const first = replica.versions.publishVersion([{ keyId, version: '2.0' }]);
          await until(async () => (await direct.get(versionKeyName(keyId)))?.startsWith('2.0') === true);
          await replica.versions.markStale([keyId]);
          await replica.versions.publishVersion([{ keyId, version: '3.0' }]);
          await first;
        },
      },
      {
        name: 'deletion',
        make: async (keyId) => {
          await replica.versions.markStale([keyId]);
          await replica.versions.retire([{ keyId }]);
        },
      },
    ];
    it.each(changes)('acknowledges a $name only when no old rejection is repeated', async ({ make }) => {
      const { keyId, ask } = await rejected();
      await make(keyId);
      expect(await ask()).toBe('stale');
    });

    it('repeats no rejection of one customer to another', async () => {
      const keyId = newKeyId();
      const limits = [one, quota(1, 'day', { id: 'tenant', per: 'customer' })];
      const cached = new RejectionCache(replica.limiter, { clock: systemClock, changes: deaf });
      const ask = (customerId: string, fresh = false) =>
        decide(cached, subject(keyId, { fresh, limits, customerId }));
      expect((await ask('acme', true)).kind).toBe('allowed');
      const isExceeded = async (customerId: string) => {
        const decision = await ask(customerId);
        return decision.kind === 'limited' && decision.windows.map((window) => window.isExceeded);
      };
      expect(await isExceeded('other')).toEqual([true, false]);
      expect(await isExceeded('acme')).toEqual([true, true]);
      expect(await isExceeded('acme')).toEqual([true, true]);
      expect(await isExceeded('other')).toEqual([true, false]);
    });

    it('still compares the version of a key that was limited', async () => {
      const { keyId } = await rejected();
      const asked = { fresh: false, quota: quota(2, 'hour') };
      expect((await decide(replica.limiter, subject(keyId, { ...asked, version: '2.0' }))).kind).toBe(
        'stale',
      );
      expect((await decide(replica.limiter, subject(keyId, asked))).kind).toBe('allowed');
    });
  });
});
