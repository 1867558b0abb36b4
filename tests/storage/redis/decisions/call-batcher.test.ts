import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LimitSubject } from '../../../../src/limiter/rate-limiter.ts';
import type { OpenRedis } from '../../../../src/storage/redis/open-redis.ts';
import { windowKeyName } from '../../../../src/storage/redis/redis-key-names.ts';
import { decide, isReady, newKeyId, openReplica, quota, subject } from '../../../support/limiter-stores.ts';
import { type RedisServer, startRedisServer } from '../../../support/redis-server.ts';
import { until } from '../../../support/until.ts';

describe('decisions of one event-loop turn', () => {
  let server: RedisServer;
  let direct: Redis;
  let replica: OpenRedis;

  beforeAll(async () => {
    server = await startRedisServer();
    direct = new Redis(server.url);
    replica = openReplica(server.url);
    await until(() => isReady(replica));
    await replica.replicas.stop();
  });
  afterEach(async () => {
    await direct.config('SET', 'maxmemory', '0');
  });
  afterAll(async () => {
    direct.disconnect();
    await replica.close();
    await server.stop();
  });

  const together = (subjects: readonly LimitSubject[]) =>
    Promise.all(subjects.map((one) => decide(replica.limiter, one)));
  const calls = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1] ?? 0);

  it('allow exactly the limit of a key that they share', async () => {
    const asked = subject(newKeyId(), { quota: quota(150, 'hour') });
    const decisions = await together(Array.from({ length: 400 }, () => asked));
    const allowed = decisions.flatMap((decision) =>
      decision.kind === 'allowed' ? [decision.remaining] : [],
    );
    expect(allowed).toEqual(Array.from({ length: 150 }, (_, index) => 149 - index));
    expect(decisions.filter(({ kind }) => kind === 'limited')).toHaveLength(250);
    expect(await direct.get(windowKeyName(asked.keyId, 'main:3600000'))).toBe('150');
  });

  it('count a customer whose name has more bytes than characters', async () => {
    const keyId = newKeyId();
    const each = quota(9, 'hour', { id: 'each', per: 'customer' });
    const asked = subject(keyId, { quota: each, customerId: 'Zoë 漢字 🙂' });
    expect(await together([asked, asked])).toMatchObject([{ remaining: 8 }, { remaining: 7 }]);
    const names = await direct.keys(`*${keyId}*:window:*Zoë 漢字 🙂*`);
    expect(await Promise.all(names.map((name) => direct.get(name)))).toEqual(['2']);
  });

  it('each get their own response, in one call', async () => {
    const [full, changed, odd, plain] = [newKeyId(), newKeyId(), newKeyId(), newKeyId()];
    await together([
      subject(full, { quota: quota(1, 'hour') }),
      subject(changed, { version: '2.1' }),
      subject(odd, { quota: quota(9, 'hour') }),
    ]);
    await direct.set(windowKeyName(odd, 'main:3600000'), '1.5', 'KEEPTTL');
    const before = await calls();
    const decisions = await together([
      subject(full, { quota: quota(1, 'hour'), fresh: false }),
      subject(changed, { version: '1.1', fresh: false }),
      subject(odd, { quota: quota(9, 'hour'), fresh: false }),
      subject(plain, { quota: quota(7, 'minute') }),
      subject(newKeyId(), { quota: null }),
      subject(plain, { quota: quota(7, 'minute') }),
    ]);
    expect(await calls()).toBe(before + 1);
    expect(decisions).toMatchObject([
      { kind: 'limited' },
      { kind: 'stale' },
      { kind: 'allowed', remaining: 8 },
      { kind: 'allowed', remaining: 6 },
      { kind: 'unlimited' },
      { kind: 'allowed', remaining: 5 },
    ]);
  });

  it('do not fail together: without memory, a key over its limit is still limited', async () => {
    const full = subject(newKeyId(), { quota: quota(1, 'hour') });
    const other = subject(newKeyId(), { quota: quota(5, 'hour') });
    await together([full, other]);
    await direct.config('SET', 'maxmemory', '1');
    const decisions = await together([
      { ...full, fresh: false },
      { ...other, fresh: false },
      { ...full, fresh: false },
    ]);
    expect(decisions).toMatchObject([
      { kind: 'limited' },
      { kind: 'unavailable', cause: { name: 'NotCounted' } },
      { kind: 'limited' },
    ]);
    expect(await direct.get(windowKeyName(other.keyId, 'main:3600000'))).toBe('1');
  });
});
