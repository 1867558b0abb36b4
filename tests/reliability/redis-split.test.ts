import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { startWatchedRedis, type WatchedRedis } from '../support/redis-sentinel.ts';
import { until } from '../support/until.ts';
import { ask, type RedisFleet, startRedisFleet } from './support/redis-fleet.ts';
import { startLoad } from './support/steady-load.ts';

const LIMIT = 1_000_000;

let redis: WatchedRedis;
/** Connections to the two servers themselves; they keep these names whatever becomes of the servers. */
let oldMaster: Redis;
let newMaster: Redis;
let fleet: RedisFleet;
let key: { readonly id: string; readonly secret: string };

beforeAll(async () => {
  redis = await startWatchedRedis('mymaster');
  oldMaster = new Redis(redis.master.url);
  newMaster = new Redis(redis.standby.url);
  const settings = { REDIS_URL: redis.url, REDIS_MODE: 'sentinel', REDIS_TIMEOUT_MS: '2000' };
  fleet = await startRedisFleet([settings, settings]);
  await fleet.admin.makePlan('large', LIMIT, 'day');
  key = await fleet.admin.makeKey('large', 'large');
});
afterAll(async () => {
  await fleet?.stop();
  oldMaster?.disconnect();
  newMaster?.disconnect();
  await redis?.stop();
});

/** Two clients at each replica. Resolves, once stopped, with what did not get 200. */
function startLoads(): { stop(): Promise<readonly string[]> } {
  const loads = fleet.replicas.map(({ url }) =>
    startLoad(url, key.secret, [{ method: 'GET', path: '/', clients: 2 }]),
  );
  return {
    stop: async () => {
      const reports = await Promise.all(loads.map((load) => load.stop()));
      return reports.flatMap(({ failures }) => failures);
    },
  };
}

async function countedBy(server: Redis): Promise<number> {
  return Number((await server.get(`tg:{${key.id}}:window:main:86400000`)) ?? 0);
}

/** Whether a server takes itself for a master, and what it has counted for the key, both at the same moment. */
async function standing(server: Redis): Promise<{ readonly isMaster: boolean; readonly counted: number }> {
  const [role, window] =
    (await server.multi().role().get(`tg:{${key.id}}:window:main:86400000`).exec()) ?? [];
  const state: unknown = role?.[1];
  return { isMaster: Array.isArray(state) && state[0] === 'master', counted: Number(window?.[1] ?? 0) };
}

/** Names of the gateways' connections to a server. */
async function gatewaysAt(server: Redis): Promise<readonly string[]> {
  return String(await server.client('LIST')).match(/name=tollgate-\w+/g) ?? [];
}

/**
 * Every replica has its decisions from this server: a request each, counted there. Again, if what one allowed without Redis was given back
 * in between.
 */
async function decidesAlone(server: Redis): Promise<void> {
  await until(async () => {
    const before = await countedBy(server);
    let areDecided = true;
    for (const { url } of fleet.replicas) {
      const { status, headers } = await ask(url, key.secret);
      expect(status).toBe(200);
      areDecided &&= headers.has('x-ratelimit-remaining');
    }
    return areDecided && (await countedBy(server)) === before + fleet.replicas.length;
  });
}

async function areCountedBy(server: Redis): Promise<void> {
  await until(async () => {
    const before = await countedBy(server);
    const responses = await Promise.all(fleet.replicas.map(({ url }) => ask(url, key.secret)));
    const areCounted = responses.every(({ headers }) => headers.has('x-ratelimit-remaining'));
    return areCounted && (await countedBy(server)) >= before + fleet.replicas.length;
  });
}

describe('replicas whose master was cut off and replaced', () => {
  it('count at the new master, and not at the old one when it comes back', async () => {
    const load = startLoads();
    try {
      await until(async () => (await countedBy(newMaster)) > 100);
      redis.master.pause();
      await until(async () => (await standing(newMaster)).isMaster);
      await areCountedBy(newMaster);

      redis.master.resume();
      const left = await standing(oldMaster);
      await until(async () => {
        // While it copies the new master it may respond with nothing.
        const now = await standing(oldMaster).catch(() => undefined);
        if (now?.isMaster) expect(now.counted).toBe(left.counted);
        return now !== undefined && !now.isMaster;
      });
      expect((await standing(newMaster)).isMaster).toBe(true);
      expect(await gatewaysAt(oldMaster)).toEqual([]);
    } finally {
      redis.master.resume();
      await load.stop();
    }
    expect(await load.stop()).toEqual([]);
    await decidesAlone(newMaster);
    // What the old one had counted by itself is forgotten: it is a copy now.
    await until(async () => (await countedBy(oldMaster)) === (await countedBy(newMaster)));
  }, 180_000);

  it('follow a failover ordered by the sentinels while both servers live', async () => {
    const sentinel = new Redis(redis.sentinels[0]?.port ?? 0);
    const load = startLoads();
    try {
      const isBegun = async () =>
        (await sentinel.call('SENTINEL', 'FAILOVER', 'mymaster').catch(() => 'not yet')) === 'OK';
      await until(isBegun);
      await until(async () => !(await standing(newMaster)).isMaster);
      await areCountedBy(oldMaster);
    } finally {
      sentinel.disconnect();
      await load.stop();
    }
    expect(await load.stop()).toEqual([]);
    await decidesAlone(oldMaster);
    expect(await gatewaysAt(newMaster)).toEqual([]);
  }, 180_000);
});
