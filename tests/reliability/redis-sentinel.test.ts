import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startWatchedRedis, type WatchedRedis } from '../support/redis-sentinel.ts';
import { until } from '../support/until.ts';
import { ask, type RedisFleet, startRedisFleet } from './support/redis-fleet.ts';

/** More than the clients send, however long the failover takes. */
const LIMIT = 1_000_000_000;

/** More than the requests that can be without a response at one moment, of all clients, a few times over. */
const UNDER_WAY = 100;
/** Between a response and the next request of a client, so that the servers have the machine to themselves for the most part. */
const PAUSE_MS = 5;

let redis: WatchedRedis;
let standbyDirect: Redis;
let fleet: RedisFleet;

beforeAll(async () => {
  redis = await startWatchedRedis('mymaster');
  standbyDirect = new Redis(redis.standby.url);
  const settings = { REDIS_URL: redis.url, REDIS_MODE: 'sentinel', REDIS_TIMEOUT_MS: '2000' };
  fleet = await startRedisFleet([settings, settings]);
});
afterAll(async () => {
  await fleet?.stop();
  standbyDirect?.disconnect();
  await redis?.stop();
});

describe('replicas whose Redis fails over to its standby under load', () => {
  it('respond to every request, find the new master, and count on from what it knows', async () => {
    await fleet.admin.makePlan('large', LIMIT, 'hour');
    const { id, secret } = await fleet.admin.makeKey('large', 'large');
    const statuses: Record<number, number> = {};
    let isOver = false;
    const client = async (url: string): Promise<void> => {
      while (!isOver) {
        const { status } = await ask(url, secret);
        statuses[status] = (statuses[status] ?? 0) + 1;
        await wait(PAUSE_MS);
      }
    };
    const clients = fleet.replicas.flatMap(({ url }) => [client(url), client(url), client(url)]);
    const counted = async (): Promise<number> =>
      Number((await standbyDirect.get(`tg:{${id}}:window:main:3600000`)) ?? 0);
    let awayMs = 0;
    /** Of them, the master alone had counted `lost` when it died. */
    let allowedBefore = 0;
    let lost = 0;
    try {
      await until(async () => (await counted()) > 300);
      const killedAt = performance.now();
      redis.master.kill('SIGKILL');
      allowedBefore = statuses[200] ?? 0;
      lost = allowedBefore - (await counted());
      await until(async () => {
        const responses = await Promise.all(fleet.replicas.map(({ url }) => ask(url, secret)));
        for (const { status } of responses) statuses[status] = (statuses[status] ?? 0) + 1;
        return responses.every(({ headers }) => headers.get('x-ratelimit-remaining') !== null);
      });
      awayMs = performance.now() - killedAt;
    } finally {
      isOver = true;
      await Promise.all(clients);
    }

    expect(Object.keys(statuses)).toEqual(['200']);
    const allowed = statuses[200] ?? 0;
    // Usage that was on its way to the standby is lost as well; all that waited in the replicas arrives.
    const recorded = async (): Promise<number> => (await fleet.admin.detail(id)).usage.totalRequests;
    // The connection that reads statistics may find the new master later than the one that decides.
    await until(async () => (await recorded().catch(() => -1)) === allowed, { timeoutMs: 8000 }).catch(
      () => {},
    );
    // What was allowed without Redis is given back; what was on its way to or from the master when it died is not.
    const most = Math.max(0, lost) + UNDER_WAY;
    await until(async () => allowed - (await counted()) <= most);
    const missing = allowed - (await counted());
    const unrecorded = allowed - (await recorded());
    process.stderr.write(
      `failover: ${Math.round(awayMs)} ms without Redis, ${allowed} allowed, ${missing} of them not counted, ${unrecorded} not recorded\n`,
    );
    expect(unrecorded).toBeGreaterThanOrEqual(0);
    expect(unrecorded).toBeLessThanOrEqual(allowedBefore + UNDER_WAY);
    expect(missing).toBeGreaterThanOrEqual(0);
    for (const replica of fleet.replicas) {
      expect(replica.output()).toContain('Redis does not decide: the failure mode does');
      expect(replica.output()).toContain('Redis decides again');
    }
  });
});
