import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Decision } from '../../src/limiter/rate-limiter.ts';
import type { OpenRedis } from '../../src/storage/redis/open-redis.ts';
import { decide, isReady, newKeyId, openReplica, quota, subject } from '../support/limiter-stores.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

/** Longer than the usual one, so that only what a test does makes Redis late on a busy machine. */
const TIMEOUT_MS = 1200;
/** Between the timeout and a second one. */
const LATE_MS = TIMEOUT_MS + 1000;

let server: RedisServer;
let relay: TcpRelay;
let direct: Redis;
let replica: OpenRedis;
let areRepliesDropped: boolean;

beforeEach(async () => {
  areRepliesDropped = false;
  server = await startRedisServer();
  relay = await TcpRelay.start(server.port, {
    rewrite: (bytes) => (areRepliesDropped ? Buffer.alloc(0) : bytes),
  });
  direct = new Redis(server.url);
  replica = openReplica(relay.urlOf(server.url), 'single', { timeoutMs: TIMEOUT_MS });
  await until(() => isReady(replica));
  // Nobody but decisions calls scripts then.
  await replica.replicas.stop();
});
afterEach(async () => {
  direct.disconnect();
  await replica.close();
  await relay.stop();
  await server.stop();
});

interface Timed {
  readonly decision: Decision;
  readonly tookMs: number;
  /** A timer of this process that was set at the same time fired first: however busy the machine, timers fire in the order of their times. */
  readonly isLate: boolean;
}

async function timed(keyId: string, lateMs = LATE_MS): Promise<Timed> {
  const startedAt = performance.now();
  let isLate = false;
  const timer = setTimeout(async () => {
    // What is due at the same turn of a loop that was held up comes first.
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    isLate = true;
  }, lateMs);
  const decision = await decide(replica.limiter, subject(keyId, { quota: quota(1000, 'hour') }));
  clearTimeout(timer);
  return { decision, tookMs: performance.now() - startedAt, isLate };
}

async function used(keyId: string): Promise<number> {
  return Number((await direct.get(`tg:{${keyId}}:window:main:3600000`)) ?? 0);
}

/** Calls of the decision script that the server was sent: one for all decisions of an event-loop turn. */
async function calls(): Promise<number> {
  const stats = await direct.info('commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

describe('a decision without a reply from Redis', () => {
  it('is given up after the timeout, also when others before it wait', async () => {
    server.pause();
    const keyId = newKeyId();
    const waiting: Promise<Timed>[] = [];
    // One after the other, in different turns of the event loop.
    for (let time = 0; time < 20; time += 1) {
      waiting.push(timed(keyId));
      await new Promise(setImmediate);
    }
    for (const { decision, tookMs, isLate } of await Promise.all(waiting)) {
      expect(decision).toMatchObject({ kind: 'unavailable' });
      expect(tookMs).toBeGreaterThanOrEqual(TIMEOUT_MS - 2);
      expect(isLate).toBe(false);
    }
    server.resume();
  });

  it('is not carried out when Redis goes on, although it had been sent', async () => {
    const keyId = newKeyId();
    await timed(keyId);
    await direct.config('RESETSTAT');
    server.pause();
    const given = await Promise.all(Array.from({ length: 50 }, () => timed(keyId)));
    expect(given.every(({ decision }) => decision.kind === 'unavailable')).toBe(true);
    server.resume();
    await until(async () => (await calls()) === 1);
    expect(await used(keyId)).toBe(1);
    expect(await timed(keyId)).toMatchObject({ decision: { kind: 'allowed', remaining: 998 } });
  });

  it('is counted once, and not sent again, where only the reply was lost', async () => {
    const keyId = newKeyId();
    await timed(keyId);
    await direct.config('RESETSTAT');
    areRepliesDropped = true;
    const lost = Array.from({ length: 30 }, () => timed(keyId));
    await until(async () => (await used(keyId)) === 31);
    relay.cut();
    for (const { decision } of await Promise.all(lost)) {
      expect(decision).toMatchObject({
        kind: 'unavailable',
        cause: { name: expect.not.stringMatching('NotCounted') },
      });
    }
    areRepliesDropped = false;
    await until(() => replica.limiter.isReady);
    expect(await timed(keyId)).toMatchObject({ decision: { kind: 'allowed', remaining: 968 } });
    expect(await calls()).toBe(2);
  });

  it('is not sent at all while there is no connection, and certainly not counted', async () => {
    const keyId = newKeyId();
    relay.reject();
    await until(() => !replica.limiter.isReady);
    const { decision, isLate } = await timed(keyId, TIMEOUT_MS - 50);
    expect(decision).toMatchObject({ kind: 'unavailable', cause: { name: 'NotCounted' } });
    expect(isLate).toBe(false);
    relay.pass(server.port);
    await until(() => replica.limiter.isReady);
    expect(await used(keyId)).toBe(0);
  });

  it('is followed by others over a new connection when the old one never responds', async () => {
    const impatient = openReplica(relay.urlOf(server.url), 'single', { timeoutMs: 50 });
    await until(() => isReady(impatient));
    const kind = async () => (await decide(impatient.limiter, subject(newKeyId()))).kind;
    // A path that lost its state: packets vanish without a sign.
    relay.silence();
    await until(async () => (await kind()) === 'unavailable' && !impatient.limiter.isReady);
    relay.cut();
    relay.pass();
    await until(async () => (await kind()) === 'allowed');
    await impatient.close();
  });
});

describe('the connections', () => {
  it('are one each for decisions, usage and subscription', async () => {
    const names = String(await direct.client('LIST')).match(/name=tollgate-\w+/g);
    expect(names?.toSorted()).toEqual([
      'name=tollgate-decisions',
      'name=tollgate-subscription',
      'name=tollgate-usage',
    ]);
  });
});
