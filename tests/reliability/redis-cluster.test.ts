import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type Cluster, Redis } from 'ioredis';
import { CostSettler } from '../../src/limiter/cost-settler.ts';
import { NotCounted } from '../../src/limiter/not-counted.ts';
import { hashSlotOf } from '../../src/storage/redis/decisions/hash-slot.ts';
import type { OpenRedis } from '../../src/storage/redis/open-redis.ts';
import { versionKeyName, windowKeyName } from '../../src/storage/redis/redis-key-names.ts';
import { Admin } from '../support/admin.ts';
import { burst, statusOf } from '../support/burst.ts';
import { freePort } from '../support/free-port.ts';
import { decide, isReady, newKeyId, openReplica, quota, subject } from '../support/limiter-stores.ts';
import { clusterArgs, type RedisCluster, startRedisCluster } from '../support/redis-cluster.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';
import { type RedisFleet, startRedisFleet } from './support/redis-fleet.ts';

/** Silence after which the others replace a primary, when one dies. */
const FAILOVER_MS = 1500;

let cluster: RedisCluster;
const replicas: OpenRedis[] = [];

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterEach(async () => {
  for (const replica of replicas.splice(0)) await replica.close();
});
afterAll(() => cluster?.stop());

async function startReplica(): Promise<OpenRedis> {
  const replica = openReplica(cluster.url, 'cluster', { timeoutMs: 5000 });
  replicas.push(replica);
  await until(() => isReady(replica));
  return replica;
}

/** Moves the slot of a key round the primaries, again and again, until stopped. `reach` waits for as many moves. */
function moveAround(keyId: string): { reach(count: number): Promise<void>; stop(): Promise<void> } {
  const slot = hashSlotOf(keyId);
  let isStopped = false;
  let moves = 0;
  const moving = (async () => {
    while (!isStopped) {
      const to = cluster.primaries[moves % cluster.primaries.length];
      if (to !== undefined) await cluster.moveSlot(slot, to);
      moves += 1;
    }
  })();
  return {
    reach: (count) => until(() => moves >= count),
    stop: () => {
      isStopped = true;
      return moving;
    },
  };
}

describe('in a Redis Cluster of three primaries', () => {
  it('the slot of a key is the one that the servers say', async () => {
    for (let time = 0; time < 50; time += 1) {
      const keyId = newKeyId();
      expect(await cluster.primaries[0]?.direct.cluster('KEYSLOT', `tg:{${keyId}}:window:main:3600000`)).toBe(
        hashSlotOf(keyId),
      );
    }
  });

  it('keys are spread over all of them, and each is one call', async () => {
    const replica = await startReplica();
    await replica.replicas.stop();
    for (const { direct } of cluster.primaries) await direct.config('RESETSTAT');
    await Promise.all(Array.from({ length: 300 }, () => decide(replica.limiter, subject(newKeyId()))));
    const calls = await Promise.all(
      cluster.primaries.map(async ({ direct }) =>
        Number(
          /cmdstat_eval(?:sha)?:calls=(\d+),.*rejected_calls=0,failed_calls=0/.exec(
            await direct.info('commandstats'),
          )?.[1],
        ),
      ),
    );
    expect(calls.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(297);
    for (const count of calls) expect(count).toBeGreaterThan(50);
  });

  it('a grant goes by the clock of the server of its key', async () => {
    const { counters } = await startReplica();
    const keyId = newKeyId();
    const home = await cluster.ownerOf(hashSlotOf(keyId));
    const others = cluster.primaries.filter((primary) => primary !== home);
    for (const { direct } of others) await direct.config('RESETSTAT');
    for (let time = 0; time < 60; time += 1)
      await counters.grant({ keyId, limits: [quota(5, 'hour')], customerId: '', units: 1 });
    let askedElsewhere = 0;
    for (const { direct } of others)
      askedElsewhere += Number(/cmdstat_time:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1] ?? 0);
    // A replica compares the clocks of all servers with its own now and then.
    expect(askedElsewhere).toBeLessThan(20);
  });

  it('a grant is made once although its server leaves the client before it replies', async () => {
    const { counters, usageConnection } = await startReplica();
    const granted = { keyId: newKeyId(), limits: [quota(5, 'hour')], customerId: '' };
    await counters.grant({ ...granted, units: 1 });
    const { server } = await cluster.ownerOf(hashSlotOf(granted.keyId));
    const node = (usageConnection as Cluster)
      .nodes('master')
      .find(({ options }) => options.port === server.port);
    if (node === undefined) throw new Error('the client does not know the server of the key');
    const { stream } = node;
    const time = node.time.bind(node);
    let sentBefore = Number.POSITIVE_INFINITY;
    node.time = async () => {
      const now = await time();
      server.pause();
      sentBefore = stream.bytesWritten;
      return now;
    };
    const granting = counters.grant({ ...granted, units: 5 });
    await until(() => stream.bytesWritten > sentBefore && stream.writableLength === 0);
    // As the client does with a server that the cluster no longer has.
    node.disconnect();
    stream.destroy();
    await until(() => node.status === 'end');
    server.resume();
    await granting;
    expect((await counters.read(granted)).counters[0]?.granted).toBe(6);
  });

  it('limits are exact over several replicas while the slot of the key is on the move', async () => {
    const limiters = [await startReplica(), await startReplica()].map(({ limiter }) => limiter);
    const keyId = newKeyId();
    const asked = subject(keyId, { quota: quota(1500, 'hour') });
    const moving = moveAround(keyId);
    const kinds: Record<string, number> = {};
    const asking = async (index: number): Promise<void> => {
      for (let time = 0; time < 25; time += 1) {
        const limiter = limiters[index % 2];
        if (limiter === undefined) throw new Error('no limiter');
        const { kind } = await decide(limiter, asked);
        kinds[kind] = (kinds[kind] ?? 0) + 1;
      }
    };
    try {
      for (let part = 1; part <= 4; part += 1) {
        await Promise.all(Array.from({ length: 30 }, (_, index) => asking(index)));
        await moving.reach(part);
      }
    } finally {
      await moving.stop();
    }
    expect(kinds).toEqual({ allowed: 1500, limited: 1500 });
  });

  it('the faults of each of them are found, and those of several once', async () => {
    const replica = await startReplica();
    expect(await replica.findFaults()).toEqual([]);
    const evict = (index: number, policy: string) =>
      cluster.primaries[index]?.direct.config('SET', 'maxmemory-policy', policy);
    for (const index of cluster.primaries.keys()) {
      await evict(index, 'allkeys-lru');
      expect(await replica.findFaults()).toEqual([expect.stringContaining('allkeys-lru')]);
      await evict(index, 'noeviction');
    }
    for (const index of cluster.primaries.keys()) await evict(index, 'allkeys-lru');
    expect(await replica.findFaults()).toHaveLength(1);
    for (const index of cluster.primaries.keys()) await evict(index, 'noeviction');
  });

  it('a cost is settled after the slot of its key has moved', async () => {
    const replica = await startReplica();
    const keyId = newKeyId();
    const slot = hashSlotOf(keyId);
    const from = await cluster.ownerOf(slot);
    const to = cluster.primaries.find((primary) => primary !== from);
    if (to === undefined) throw new Error('no other server');
    const decision = await decide(replica.limiter, subject(keyId, { quota: quota(100, 'hour') }));
    if (decision.kind !== 'allowed') throw new Error(decision.kind);
    await cluster.beginMove(slot, to);
    const names = (await from.direct.cluster('GETKEYSINSLOT', slot, 100)) as string[];
    await from.direct.call('MIGRATE', '127.0.0.1', to.server.port, '', 0, 30_000, 'KEYS', ...names);
    await cluster.moveSlot(slot, to);
    const { nowMs: decidedAtMs, windows } = decision;
    const settled = await replica.counters.settle({ keyId, customerId: '', decidedAtMs, windows, units: 20 });
    expect(settled.used).toEqual([21]);
  });

  it.each([
    ['its version has not', { hasVersion: true }],
    ['it has no version', { hasVersion: false }],
  ])('a cost waits for the end of a move: its window has moved, %s', async (_when, { hasVersion }) => {
    const replica = await startReplica();
    const [keyId, limit] = [newKeyId(), quota(100, 'hour')];
    const slot = hashSlotOf(keyId);
    const from = await cluster.ownerOf(slot);
    const to = cluster.primaries.find((primary) => primary !== from);
    if (to === undefined) throw new Error('no other server');
    const asked = subject(keyId, { quota: limit });
    const decision = await decide(replica.limiter, asked);
    if (decision.kind !== 'allowed') throw new Error(decision.kind);
    const [window = ''] = decision.windows.map(({ limit: { windowName } }) =>
      windowKeyName(keyId, windowName),
    );
    if (!hasVersion) await from.direct.del(versionKeyName(keyId));
    await cluster.beginMove(slot, to);
    await from.direct.call('MIGRATE', '127.0.0.1', to.server.port, '', 0, 30_000, 'KEYS', window);
    const failures: unknown[] = [];
    const settler = new CostSettler({
      settle: (difference) =>
        replica.counters.settle(difference).catch((error: unknown) => {
          failures.push(error);
          throw error;
        }),
    });
    settler.settle(asked, decision, '21');
    await until(() => failures.length > 0);
    await cluster.moveSlot(slot, to);
    await until(() => settler.counts.settled + settler.counts.failed > 0);
    expect(settler.counts).toMatchObject({ settled: 1, failed: 0 });
    const { counters } = await replica.counters.read({ keyId, limits: [limit], customerId: '' });
    expect(counters).toMatchObject([{ used: 21 }]);
  });

  it('they are found by a replica that started before them', async () => {
    const [port, unused] = [await freePort(), await freePort()];
    const replica = openReplica(`redis://127.0.0.1:${port},127.0.0.1:${unused}`, 'cluster');
    replicas.push(replica);
    await until(() => replica.lastFailure() !== undefined);
    const server = await startRedisServer([...(await clusterArgs()), '--port', String(port)]);
    const direct = new Redis(server.url);
    try {
      await direct.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
      await until(() => isReady(replica));
    } finally {
      direct.disconnect();
      await server.stop();
    }
  });

  it('they are found by name, although another name of the URL is unknown', async () => {
    const addresses = cluster.primaries.map(({ server }) => `localhost:${server.port}`);
    const replica = openReplica(`redis://unknown.invalid,${addresses}`, 'cluster');
    replicas.push(replica);
    await until(() => isReady(replica));
  });

  it('units for a server that can not be reached are certainly not counted, and are once it is back', async () => {
    const replica = await startReplica();
    const [keyId, limit] = [newKeyId(), quota(100, 'hour')];
    const decision = await decide(replica.limiter, subject(keyId, { quota: limit }));
    if (decision.kind !== 'allowed') throw new Error(decision.kind);
    const primary = await cluster.ownerOf(hashSlotOf(keyId));
    const port = new URL(primary.server.url).port;
    const connection = (replica.usageConnection as Cluster)
      .nodes('master')
      .find(({ options }) => String(options.port) === port);
    const { nowMs: decidedAtMs, windows } = decision;
    const settle = () => replica.counters.settle({ keyId, customerId: '', decidedAtMs, windows, units: 20 });
    const units = { keyId, limit, customerId: '', units: 3, resetAtMs: decidedAtMs + 3_600_000 };
    const restore = () => replica.counters.restore(units, 'operation');
    primary.server.pause();
    try {
      connection?.disconnect(true);
      await until(() => connection?.status === 'connect');
      await expect(settle()).rejects.toBeInstanceOf(NotCounted);
      await expect(restore()).rejects.toBeInstanceOf(NotCounted);
    } finally {
      primary.server.resume();
    }
    // The cluster may take a while to be whole again.
    const isDone = (count: () => Promise<unknown>) =>
      count().then(
        () => true,
        (error: unknown) => {
          expect(error).toBeInstanceOf(NotCounted);
          return false;
        },
      );
    await until(() => isDone(settle));
    await until(() => isDone(restore));
    const { counters } = await replica.counters.read({ keyId, limits: [limit], customerId: '' });
    expect(counters).toMatchObject([{ used: 24 }]);
  });

  it('a lost subscription is noticed, and goes on at another server', async () => {
    const replica = await startReplica();
    let resets = 0;
    replica.changes.onReset(() => {
      resets += 1;
    });
    const changed: string[] = [];
    replica.changes.onChange((keyId) => changed.push(keyId));
    const subscribersOf = ({ direct }: RedisCluster['primaries'][number]) =>
      direct.call('CLIENT', 'LIST', 'TYPE', 'pubsub');
    const lists = await Promise.all(cluster.primaries.map(subscribersOf));
    const servers = cluster.primaries.filter((_, index) => lists[index] !== '');
    expect(servers).not.toEqual([]);
    // Only there: on a slow machine the replica is at the next server before that would be asked to do the same.
    await Promise.all(servers.map(({ direct }) => direct.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
    await until(() => resets >= 2 && replica.changes.isSubscribed);
    expect(await Promise.all(servers.map(subscribersOf))).toEqual(servers.map(() => ''));
    await until(async () => {
      await replica.versions.retire([{ keyId: 'key_moved' }]);
      return changed.includes('key_moved');
    });
  });
});

describe('gateways over a Redis Cluster', () => {
  let fleet: RedisFleet;
  beforeAll(async () => {
    const settings = { REDIS_URL: cluster.url, REDIS_MODE: 'cluster', REDIS_TIMEOUT_MS: '5000' };
    fleet = await startRedisFleet([settings, settings]);
  });
  afterAll(() => fleet?.stop());

  const degraded = async (): Promise<number> => {
    const counts = await Promise.all(
      fleet.replicas.map(({ opsUrl }) =>
        metric(opsUrl, 'tollgate_limiter_decisions_total', 'mode="degraded"'),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };

  /** Whether all primaries reject calls while one is away. */
  async function requireFullCoverage(required: 'yes' | 'no'): Promise<void> {
    for (const { direct } of cluster.primaries)
      await direct.config('SET', 'cluster-require-full-coverage', required);
  }

  /** A key in a slot of this primary or of another one. */
  async function keyAt(primary: RedisCluster['primaries'][number], isThere: boolean) {
    for (;;) {
      const key = await fleet.admin.makeKey('placed', 'partly');
      const owner = await cluster.ownerOf(hashSlotOf(key.id));
      if ((owner === primary) === isThere) return key;
    }
  }

  async function untilStatus(keys: readonly { readonly secret: string }[], status: number): Promise<void> {
    for (const { url } of fleet.replicas)
      for (const { secret } of keys) await until(async () => (await statusOf(url, secret)) === status);
  }

  /** Until both gateways count the requests of the key in Redis. */
  async function untilCounted(secret: string): Promise<void> {
    await until(
      async () => {
        const responses = await Promise.all(
          fleet.replicas.map(({ url }) => fetch(url, { headers: { authorization: `Bearer ${secret}` } })),
        );
        return responses.every(({ headers }) => headers.get('x-ratelimit-remaining') !== null);
      },
      { longestPauseMs: 100 },
    );
  }

  it('allow exactly the limit and record every request while a slot moves', async () => {
    await fleet.admin.makePlan('exact', 700, 'hour');
    const { id, secret } = await fleet.admin.makeKey('exact', 'exact');
    const urls = fleet.replicas.map(({ url }) => url);
    const moving = moveAround(id);
    const statuses: Record<number, number>[] = [];
    try {
      for (let part = 1; part <= 4; part += 1) {
        statuses.push(await burst(urls, { secret, requests: 350, inFlight: 40 }));
        await moving.reach(part);
      }
    } finally {
      await moving.stop();
    }
    expect({ statuses, degraded: await degraded() }).toEqual({
      statuses: [{ 200: 350 }, { 200: 350 }, { 429: 350 }, { 429: 350 }],
      degraded: 0,
    });
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 1400);
  });

  it('follow a change of a key whose server is away, and still when that is back', async () => {
    await fleet.admin.makePlan('partly', 1_000_000, 'hour');
    const away = await fleet.admin.makeKey('away', 'partly');
    const primary = await cluster.ownerOf(hashSlotOf(away.id));
    const [kept, elsewhere] = [await keyAt(primary, true), await keyAt(primary, false)];
    await untilStatus([away, kept, elsewhere], 200);
    await requireFullCoverage('no');
    const [, other] = fleet.replicas;
    primary.server.pause();
    try {
      const { status, headers } = await fleet.admin.call('DELETE', `/consumer-api-key/${away.id}`);
      expect({ status, within: headers.get('tollgate-applies-within') }).toEqual({
        status: 200,
        within: '3',
      });
      await untilStatus([away], 401);
      await until(async () => {
        const changed = await new Admin(other?.url ?? '').call('PATCH', `/consumer-api-key/${elsewhere.id}`, {
          name: 'again',
        });
        return changed.status === 200 && !changed.headers.has('tollgate-applies-within');
      });
    } finally {
      primary.server.resume();
      await requireFullCoverage('yes');
    }
    await until(async () => (await primary.direct.get(`tg:{${away.id}}:version`).catch(() => '')) === '-');
    await untilCounted(kept.secret);
    await untilStatus([away], 401);
    await untilStatus([kept, elsewhere], 200);
  });

  it('find the server that takes over when a primary dies, without a restart', async () => {
    await fleet.admin.makePlan('room', 1_000_000, 'hour');
    const { id, secret } = await fleet.admin.makeKey('survivor', 'room');
    const urls = fleet.replicas.map(({ url }) => url);
    const primary = await cluster.ownerOf(hashSlotOf(id));
    const replica = await cluster.addReplica(primary);
    await replica.direct.readonly();
    expect(await burst(urls, { secret, requests: 200, inFlight: 10 })).toEqual({ 200: 200 });
    await until(async () => Number(await replica.direct.get(`tg:{${id}}:window:main:3600000`)) === 200);
    for (const { direct } of [...cluster.primaries, replica]) {
      await direct.config('SET', 'cluster-node-timeout', FAILOVER_MS);
    }
    primary.server.kill('SIGKILL');
    await untilCounted(secret);
    expect(Number(await replica.direct.get(`tg:{${id}}:window:main:3600000`))).toBeGreaterThanOrEqual(202);
  });
});
