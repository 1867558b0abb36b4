import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { onRedis } from '../support/on-redis.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { metric, readyz } from './support/probe.ts';
import { type Asked, ask, type RedisFleet, startRedisFleet, untilDegraded } from './support/redis-fleet.ts';

const MODES = ['local', 'open', 'closed'] as const;
/** Longer than the usual one, so that only what a test does makes Redis late on a busy machine. */
const TIMEOUT_MS = 2000;

let server: RedisServer;
let relay: TcpRelay;
let areRepliesDropped = false;
let fleet: RedisFleet;
/** A key with room for the requests that find out how things stand. */
let probe: string;

beforeAll(async () => {
  server = await startRedisServer();
  relay = await TcpRelay.start(server.port, {
    rewrite: (bytes) => (areRepliesDropped ? Buffer.alloc(0) : bytes),
  });
  fleet = await startRedisFleet(
    MODES.map((mode) => ({
      REDIS_URL: relay.urlOf(server.url),
      REDIS_TIMEOUT_MS: String(TIMEOUT_MS),
      LIMITER_FAILURE_MODE: mode,
    })),
  );
  await fleet.admin.makePlan('nine', 9, 'hour');
  await fleet.admin.makePlan('room', 1_000_000, 'hour');
  probe = (await fleet.admin.makeKey('probe', 'room')).secret;
});
afterAll(async () => {
  await fleet?.stop();
  await relay?.stop();
  await server?.stop();
});

interface Fault {
  readonly name: string;
  readonly inflict: () => Promise<void> | void;
  readonly heal: () => Promise<void> | void;
  /** What Redis counted for the key before the fault is still there after it. */
  readonly keepsCounts: boolean;
  /** Redis may have counted calls that it did not respond in time, or was not given back what may have been one of them. */
  readonly maySwallow: boolean;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'is rejected',
    inflict: () => relay.reject(),
    heal: () => relay.pass(server.port),
    keepsCounts: true,
    maySwallow: false,
  },
  {
    name: 'is frozen',
    inflict: () => server.pause(),
    heal: () => server.resume(),
    keepsCounts: true,
    maySwallow: true,
  },
  {
    name: 'is slower than the timeout',
    inflict: () => relay.delayReplies(2 * TIMEOUT_MS),
    heal: () => relay.delayReplies(0),
    keepsCounts: true,
    maySwallow: true,
  },
  {
    name: 'carries out calls whose replies are lost',
    inflict: () => {
      areRepliesDropped = true;
    },
    heal: () => {
      areRepliesDropped = false;
      // A reply that is missing would be taken for the next one's.
      relay.cut();
    },
    keepsCounts: true,
    maySwallow: true,
  },
  {
    name: 'is killed and comes back empty',
    inflict: () => server.stop(),
    heal: async () => {
      server = await startRedisServer(['--port', String(server.port)]);
    },
    keepsCounts: false,
    maySwallow: false,
  },
  {
    name: 'is read-only',
    inflict: async () => void (await onRedis(server.url, (direct) => direct.replicaof('127.0.0.1', '1'))),
    heal: async () => void (await onRedis(server.url, (direct) => direct.replicaof('NO', 'ONE'))),
    keepsCounts: true,
    maySwallow: false,
  },
  {
    name: 'is out of memory',
    inflict: async () => void (await onRedis(server.url, (direct) => direct.config('SET', 'maxmemory', '1'))),
    heal: async () => void (await onRedis(server.url, (direct) => direct.config('SET', 'maxmemory', '0'))),
    keepsCounts: true,
    maySwallow: false,
  },
];

async function askTimes(url: string, secret: string, times: number): Promise<readonly Asked[]> {
  const responses: Asked[] = [];
  for (let time = 0; time < times; time += 1) responses.push(await ask(url, secret));
  return responses;
}

describe.each(FAULTS)('replicas whose Redis $name', ({ inflict, heal, keepsCounts, maySwallow }) => {
  it('go on as their failure mode says, and count together again afterwards', async () => {
    const { id, secret } = await fleet.admin.makeKey('asked', 'nine');
    const before = await Promise.all(fleet.replicas.map(({ url }) => ask(url, secret)));
    expect(before.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(before.map(({ headers }) => headers.get('x-ratelimit-remaining')).toSorted()).toEqual([
      '6',
      '7',
      '8',
    ]);

    // What a replica allows by itself: its share, as one of three live replicas, of what Redis last said was left.
    const share = Math.ceil(Number(before[0]?.headers.get('x-ratelimit-remaining')) / 3);
    await inflict();
    try {
      await untilDegraded(fleet.replicas, probe, true);
      const [local = [], open = [], closed = []] = await Promise.all(
        fleet.replicas.map(({ url }) => askTimes(url, secret, 5)),
      );
      expect(local.map(({ status }) => status)).toEqual(
        Array.from({ length: 5 }, (_, index) => (index < share ? 200 : 429)),
      );
      expect(open.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      expect(closed.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
      expect(JSON.parse(closed[0]?.body ?? '')).toMatchObject({ code: 'store_unavailable' });
      expect(closed[0]?.headers.get('retry-after')).toBe('1');
      for (const { headers } of [...local, ...open, ...closed]) {
        expect(headers.get('x-ratelimit-remaining')).toBeNull();
      }
    } finally {
      await heal();
    }

    await untilDegraded(fleet.replicas, probe, false);
    const remaining = async (): Promise<number> =>
      (await fleet.admin.detail(id).catch(() => undefined))?.usage.rateLimits.remaining;
    const kept = keepsCounts ? 3 : 0;
    await until(async () => {
      const used = 9 - (await remaining());
      return maySwallow ? used >= kept : used === kept + share;
    });
    const left = await remaining();
    const after = await ask(fleet.replicas[1]?.url ?? '', secret);
    expect(after.status).toBe(left > 0 ? 200 : 429);
    expect(after.headers.get('x-ratelimit-remaining')).toBe(String(Math.max(left - 1, 0)));
    // What was recorded meanwhile waited in the replicas' memory: 15 meanwhile, and 1 after. The 3 before may have been written already.
    const recorded = async () => (await fleet.admin.detail(id)).usage.totalRequests;
    await until(async () => (await recorded()) >= (keepsCounts ? 19 : 16));
    expect(await recorded()).toBeLessThanOrEqual(19);
  });
});

describe('replicas whose Redis', () => {
  it('forgot its scripts do not notice', async () => {
    const { secret } = await fleet.admin.makeKey('scripts', 'nine');
    await onRedis(server.url, (direct) => direct.script('FLUSH'));
    for (const { url } of fleet.replicas) {
      expect((await ask(url, secret)).headers.get('x-ratelimit-remaining')).not.toBeNull();
      await onRedis(server.url, (direct) => direct.script('FLUSH'));
    }
  });

  it('may evict keys say so, and go on', async () => {
    await onRedis(server.url, (direct) => direct.config('SET', 'maxmemory-policy', 'allkeys-lru'));
    for (const { url, opsUrl } of fleet.replicas) {
      await until(async () => (await readyz(opsUrl)).components.redis?.includes('allkeys-lru') === true);
      expect((await readyz(opsUrl)).status).toBe(200);
      expect((await ask(url, probe)).status).toBe(200);
      expect(await metric(opsUrl, 'tollgate_component_up', 'component="redis"')).toBe(0);
    }
    await onRedis(server.url, (direct) => direct.config('SET', 'maxmemory-policy', 'noeviction'));
  });

  it('came and went is logged once each time; degraded decisions are in the metrics', async () => {
    await untilDegraded(fleet.replicas, probe, false);
    for (const [index, replica] of fleet.replicas.entries()) {
      const lines = replica.output();
      const given = lines.match(/Redis does not decide: the failure mode does/g)?.length ?? 0;
      const back = lines.match(/Redis decides again/g)?.length ?? 0;
      // More where the machine itself kept Redis from responding in time.
      expect(given).toBeGreaterThanOrEqual(FAULTS.length);
      expect(back).toBe(given);
      expect(lines).toContain('Redis connection lost');
      expect(lines).toContain('Redis connection is back');
      const kind = ['allowed', 'unlimited', 'unavailable'][index] ?? '';
      const degraded = await metric(
        replica.opsUrl,
        'tollgate_limiter_decisions_total',
        `kind="${kind}",mode="degraded"`,
      );
      expect(degraded).toBeGreaterThanOrEqual(3 * FAULTS.length);
    }
  });
});
