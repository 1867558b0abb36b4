import { afterEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import {
  type FailureMode,
  type GuardedRateLimiter,
  guardRateLimiter,
} from '../../../src/limiter/guards/guarded-rate-limiter.ts';
import { NotCounted } from '../../../src/limiter/not-counted.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { systemRandom } from '../../../src/platform/random.ts';
import { failureReason } from '../../../src/storage/failure-reason.ts';
import type { OpenRedis } from '../../../src/storage/redis/open-redis.ts';
import {
  decide,
  isReady,
  newKeyId,
  openReplica,
  peek,
  quota,
  subject,
} from '../../support/limiter-stores.ts';
import { onRedis } from '../../support/on-redis.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';

const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function startServer(args: readonly string[] = []): Promise<RedisServer> {
  const server = await startRedisServer(args);
  stops.push(() => server.stop());
  return server;
}

/** Sets a password on a server that runs. */
async function protect(server: RedisServer, password: string): Promise<void> {
  await onRedis(server.url, (direct) => direct.config('SET', 'requirepass', password));
}

async function startReplica(
  url: string,
  options: Parameters<typeof openReplica>[2] = {},
): Promise<OpenRedis> {
  const replica = openReplica(url, 'single', options);
  stops.push(() => replica.close());
  await until(() => isReady(replica));
  return replica;
}

function guard(replica: OpenRedis, mode: FailureMode): GuardedRateLimiter {
  return guardRateLimiter(replica.limiter, {
    clock: systemClock,
    random: systemRandom,
    changes: replica.changes,
    mode,
    liveReplicas: () => replica.replicas.liveReplicas,
    counters: replica.counters,
  });
}

/** Asks until the breaker has opened, with keys that no test counts. */
async function openBreaker({ limiter, breaker }: GuardedRateLimiter): Promise<void> {
  await until(async () => {
    await decide(limiter, subject(newKeyId()));
    return breaker.state !== 'closed';
  });
}

/** Asks until a trial call has closed the breaker. */
async function closeBreaker({ limiter, breaker }: GuardedRateLimiter): Promise<void> {
  await until(async () => {
    await decide(limiter, subject(newKeyId()));
    return breaker.state === 'closed';
  });
}

describe('a replica whose Redis', () => {
  it('is killed decides on its share, and on the shared count once Redis is back', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    const second = await startReplica(server.url);
    await until(async () => (await replica.replicas.beat()) && replica.replicas.liveReplicas === 2);
    const guarded = guard(replica, 'local');
    const asked = subject(newKeyId(), { quota: quota(5, 'hour') });
    expect(await decide(guarded.limiter, asked)).toMatchObject({ kind: 'allowed', degraded: false });

    server.kill('SIGKILL');
    await openBreaker(guarded);
    expect(await replica.replicas.beat()).toBe(false);
    expect(replica.replicas.liveReplicas).toBe(2);
    const alone: unknown[] = [];
    for (let time = 0; time < 4; time += 1) {
      alone.push(await decide(guarded.limiter, { ...asked, fresh: false }));
    }
    expect(alone).toMatchObject([
      { kind: 'allowed', remaining: 1, degraded: true },
      { kind: 'allowed', remaining: 0, degraded: true },
      { kind: 'limited', degraded: true },
      { kind: 'limited', degraded: true },
    ]);
    await expect(replica.ping()).rejects.toThrow('A store that this response needs is not available');
    await expect(replica.versions.markStale([asked.keyId])).rejects.toMatchObject({
      code: 'store_unavailable',
    });
    await expect(peek(replica.counters, asked.keyId, quota(5, 'hour'))).rejects.toMatchObject({
      code: 'store_unavailable',
      store: 'redis',
    });

    await startServer(['--port', String(server.port)]);
    await closeBreaker(guarded);
    // Counters are read over another connection than the one that closed the breaker.
    await until(() => isReady(replica));
    expect(await decide(guarded.limiter, { ...asked, fresh: false })).toEqual({ kind: 'stale' });
    // Two, or one when one of them was the breaker's trial: that one was asked of Redis, and is not given back.
    const used = async () => (await peek(replica.counters, asked.keyId, quota(5, 'hour'))).used;
    await until(async () => (await used()) >= 1);
    const givenBack = await used();
    expect(givenBack).toBeLessThanOrEqual(2);
    expect(await decide(guarded.limiter, asked)).toMatchObject({
      kind: 'allowed',
      remaining: 5 - givenBack - 1,
      degraded: false,
    });
    await second.replicas.stop();
  });

  it('is killed adds what a key used although another one has made-up customers', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    const guarded = guard(replica, 'local');
    server.kill('SIGKILL');
    await openBreaker(guarded);
    const tenant = quota(5, 'hour', { id: 'tenant', per: 'customer' });
    const madeUp = { fresh: false, limits: [quota(1_000_000, 'hour'), tenant] };
    const attacker = newKeyId();
    await Promise.all(
      Array.from({ length: 10_100 }, (_, index) =>
        decide(guarded.limiter, subject(attacker, { ...madeUp, customerId: `customer-${index}` })),
      ),
    );
    const key = newKeyId();
    const asked = subject(key, { fresh: false, quota: quota(5, 'hour') });
    const kinds: string[] = [];
    for (let time = 0; time < 6; time += 1) kinds.push((await decide(guarded.limiter, asked)).kind);
    expect(kinds).toEqual([...Array.from({ length: 5 }, () => 'allowed'), 'limited']);
    expect(guarded.restorer.dropped).toBeGreaterThan(0);

    await startServer(['--port', String(server.port)]);
    await closeBreaker(guarded);
    await until(() => isReady(replica));
    // Not all five if one of them was the breaker's trial.
    await until(async () => (await peek(replica.counters, key, quota(5, 'hour'))).used > 0);
  });

  it('freezes stops asking it, and decides at once meanwhile', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url, { timeoutMs: 100 });
    const guarded = guard(replica, 'local');
    server.pause();
    await openBreaker(guarded);
    const asked = replica.limiter.callDurations.count;
    let isDecided = false;
    guarded.limiter.decide(subject(newKeyId()), (decision) => {
      isDecided = true;
      expect(decision).toMatchObject({ kind: 'allowed', degraded: true });
    });
    expect(guarded.breaker.state === 'half-open' || isDecided).toBe(true);
    expect(replica.limiter.callDurations.count).toBe(asked);
    expect(guarded.failureMode.shared.unavailable).toBeGreaterThanOrEqual(5);

    server.resume();
    await closeBreaker(guarded);
    // On a busy machine Redis may need longer than the timeout.
    await until(async () => {
      const decision = await decide(guarded.limiter, subject(newKeyId()));
      return decision.kind === 'allowed' && !decision.degraded;
    });
  });

  it('is gone leads to 503 in mode closed and allows everything in mode open', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    const closed = guard(replica, 'closed');
    const open = guard(replica, 'open');
    await server.stop();
    const asked = subject(newKeyId(), { quota: quota(1, 'hour') });
    expect(await decide(closed.limiter, asked)).toMatchObject({ kind: 'unavailable' });
    for (let time = 0; time < 3; time += 1) {
      expect(await decide(open.limiter, asked)).toEqual({ kind: 'unlimited', degraded: true });
    }
    expect(open.failureMode.degraded.unlimited).toBe(3);
  });

  it('rejects to write is unavailable with the cause', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    await replica.usageConnection.config('SET', 'maxmemory', '1');
    const decision = await decide(replica.limiter, subject(newKeyId()));
    expect(decision).toMatchObject({
      kind: 'unavailable',
      cause: { message: expect.stringContaining('OOM') },
    });
    const resetAtMs = Date.now() + 3_600_000;
    const units = { keyId: newKeyId(), limit: quota(5, 'hour'), customerId: '', units: 2, resetAtMs };
    await expect(replica.counters.restore(units, 'an operation')).rejects.toBeInstanceOf(NotCounted);
    await replica.usageConnection.config('SET', 'maxmemory', '0');
    expect((await peek(replica.counters, units.keyId, units.limit)).used).toBe(0);
    await server.stop();
    await expect(replica.counters.restore(units, 'an operation')).rejects.toBeInstanceOf(NotCounted);
  });

  it('was never there starts all the same, and uses it when it comes', async () => {
    const server = await startServer();
    await server.stop();
    const replica = openReplica(server.url);
    stops.push(() => replica.close());
    expect(await decide(replica.limiter, subject(newKeyId()))).toMatchObject({ kind: 'unavailable' });
    await startServer(['--port', String(server.port)]);
    await until(() => isReady(replica));
    expect(await decide(replica.limiter, subject(newKeyId()))).toMatchObject({ kind: 'allowed' });
  });

  it('was down drops its cached rejections when the feed breaks and when it is back', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    let resets = 0;
    const changed: string[] = [];
    replica.changes.onReset(() => {
      resets += 1;
    });
    replica.changes.onChange((keyId) => changed.push(keyId));
    server.kill('SIGKILL');
    await until(() => resets > 0);
    const whenAway = resets;
    await startServer(['--port', String(server.port)]);
    await until(() => resets > whenAway && replica.changes.isSubscribed);
    await until(async () => {
      await replica.versions.retire([{ keyId: 'key_after' }]).catch(() => {});
      return changed.includes('key_after');
    });
  });

  it('sees the decisions of one event-loop turn as one script call', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    await replica.replicas.stop();
    const asked = subject(newKeyId());
    await decide(replica.limiter, asked);
    await replica.usageConnection.config('RESETSTAT');
    await Promise.all(Array.from({ length: 10 }, () => decide(replica.limiter, asked)));
    const stats = await replica.usageConnection.info('commandstats');
    expect(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]).toBe('1');
    expect(/cmdstat_mget:calls=(\d+)/.exec(stats)?.[1]).toBe('10');
    expect(stats).not.toContain('cmdstat_eval:');
    const { callDurations } = replica.limiter;
    expect(callDurations.count).toBe(11);
    expect(callDurations.buckets.reduce((sum, count) => sum + count, 0)).toBe(11);
    expect(callDurations.sumMs).toBeGreaterThan(0);
  });
});

describe('the connection to Redis', () => {
  it('logs each change of its state once, and never the password', async () => {
    const server = await startServer();
    const lines: string[] = [];
    const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
    const replica = await startReplica(server.url, { log });
    server.kill('SIGKILL');
    await until(() => lines.filter((line) => line.includes('connection lost')).length === 3);
    for (const line of lines) expect(JSON.parse(line).reason).toMatch(/closed|ECONN/);
    await startServer(['--port', String(server.port)]);
    await until(() => lines.filter((line) => line.includes('is back')).length === 3);
    await replica.close();
    expect(lines).toHaveLength(6);
  });

  it('keeps the password out of logs and errors when the server rejects it', async () => {
    const server = await startServer();
    await protect(server, 'the-right-one');
    const lines: string[] = [];
    const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
    const url = new URL(server.url);
    url.password = 'the-wrong-one';
    const replica = openReplica(url.href, 'single', { log });
    stops.push(() => replica.close());
    await until(() => lines.length >= 3);
    const decision = await decide(replica.limiter, subject(newKeyId()));
    const failure = await replica.ping().then(
      () => 'replied',
      (error: unknown) => error,
    );
    pino({}, { write: (line: string) => lines.push(line) }).error({ decision, err: failure });
    expect(decision.kind).toBe('unavailable');
    expect(lines.join('')).toContain('WRONGPASS');
    expect(lines.join('')).not.toContain('the-wrong-one');
  });

  it('logs in with the password of the URL, and uses its database', async () => {
    const server = await startServer();
    await protect(server, 'p@ss/word');
    const url = new URL(server.url);
    url.password = encodeURIComponent('p@ss/word');
    url.pathname = '/3';
    const replica = await startReplica(url.href);
    await decide(replica.limiter, subject(newKeyId()));
    expect(await onRedis(url.href, (direct) => direct.keys('tg:{*'))).toHaveLength(2);
  });

  it('is not made, not even to database 0, while the server lacks that of the URL', async () => {
    const server = await startServer(['--databases', '1']);
    const replica = openReplica(`${server.url}/1`);
    stops.push(() => replica.close());
    let attempts = 0;
    replica.usageConnection.on('reconnecting', () => {
      attempts += 1;
    });
    await until(() => attempts >= 2);
    expect(await decide(replica.limiter, subject(newKeyId()))).toMatchObject({ kind: 'unavailable' });
    await expect(replica.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(await replica.replicas.beat()).toBe(false);
    expect(replica.changes.isSubscribed).toBe(false);
    expect(failureReason(replica.lastFailure())).toBe('the server has no database of the number in the URL');
    expect(await onRedis(server.url, (direct) => direct.keys('*'))).toEqual([]);

    await server.stop();
    await startServer(['--port', String(server.port)]);
    await until(() => isReady(replica));
  });
});

describe('the replica registry', () => {
  it('counts the live replicas, and no longer one that stopped', async () => {
    const server = await startServer();
    const one = await startReplica(server.url);
    const other = await startReplica(server.url);
    await until(async () => (await one.replicas.beat()) && one.replicas.liveReplicas === 2);
    await other.replicas.stop();
    await until(async () => (await one.replicas.beat()) && one.replicas.liveReplicas === 1);
  });

  it('forgets a replica without a heartbeat for ten seconds', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    // Written before each look: a machine that stood still in between has both forgotten.
    await until(async () => {
      const [seconds] = await replica.usageConnection.time();
      await replica.usageConnection.zadd('tg:replicas', Number(seconds) * 1000 - 11_000, 'gone');
      await replica.usageConnection.zadd('tg:replicas', Number(seconds) * 1000 - 5000, 'slow');
      return (await replica.replicas.beat()) && replica.replicas.liveReplicas === 2;
    });
    expect(await replica.usageConnection.zscore('tg:replicas', 'gone')).toBeNull();
  });
});

describe('the health of a Redis server', () => {
  it('is good without eviction, and says so when there is some', async () => {
    const server = await startServer();
    const replica = await startReplica(server.url);
    expect(await replica.findFaults()).toEqual([]);
    await replica.usageConnection.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await replica.findFaults()).toEqual([expect.stringContaining('allkeys-lru')]);
  });

  it('is not good while its user may not use the channel of changes', async () => {
    const server = await startServer();
    const setRights = (...rights: string[]) =>
      onRedis(server.url, (direct) => direct.acl('SETUSER', 'gateway', 'on', '>password', ...rights));
    await setRights('~tg:*', '+@all', '-@admin', '-@dangerous', '+info');
    const replica = openReplica(server.url.replace('//', '//gateway:password@'));
    stops.push(() => replica.close());
    await until(() => replica.limiter.isReady && replica.usageConnection.status === 'ready');
    const lacking = 'the user lacks a right: docs/settings.md has the ones that it needs';
    await until(async () => (await replica.findFaults()).includes(lacking));
    await setRights('&tg:*');
    await until(() => replica.changes.isSubscribed);
    expect(await replica.findFaults()).toEqual([]);
  });
});
