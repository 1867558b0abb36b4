import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startWatchedRedis } from '../../support/redis-sentinel.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import { until } from '../../support/until.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { FragileRedis } from './fragile-redis.ts';

const PATIENCE = { timeoutMs: 60_000 };
/** How long the standby is frozen before the master dies: what is written meanwhile is lost. Milliseconds. */
const LONGEST_LAG_MS = 800;

/** A master, its standby, and three sentinels. */
export async function startSentinels(): Promise<FragileRedis> {
  const watched = await startWatchedRedis('chaos');
  return {
    name: 'a master and a standby with three sentinels',
    settingsOf: () => ({ REDIS_URL: watched.url, REDIS_MODE: 'sentinel' }),
    faults: [
      {
        name: 'the master is silent until its standby has taken its place, and comes back',
        run: exchange(watched.master, watched.standby),
      },
    ],
    stop: () => watched.stop(),
  };
}

/** Three primaries, one of which has a standby. */
export async function startCluster(): Promise<FragileRedis> {
  const cluster = await startRedisCluster(3);
  const [primary] = cluster.primaries;
  if (primary === undefined) throw new Error('the cluster has no primary');
  const standby = await cluster.addReplica(primary);
  return {
    name: 'a cluster of three primaries',
    settingsOf: () => ({ REDIS_URL: cluster.url, REDIS_MODE: 'cluster' }),
    faults: [
      {
        name: 'a primary is silent until its standby has taken its place, and comes back',
        run: exchange(primary.server, standby.server),
      },
    ],
    stop: () => cluster.stop(),
  };
}

/** The two change places each time. What is written while the standby is frozen before is lost. */
function exchange(first: RedisServer, second: RedisServer): (random: SeededRandom) => Promise<void> {
  let [master, standby] = [first, second];
  return async (random) => {
    const [old, next] = [master, standby];
    next.pause();
    await wait(random.between(0, LONGEST_LAG_MS));
    old.pause();
    next.resume();
    try {
      await untilMaster(next.port);
    } finally {
      old.resume();
    }
    await untilStandby(old.port);
    [master, standby] = [next, old];
  };
}

function untilMaster(port: number): Promise<void> {
  return untilSaid(port, 'role:master');
}

function untilStandby(port: number): Promise<void> {
  return untilSaid(port, 'master_link_status:up');
}

async function untilSaid(port: number, words: string): Promise<void> {
  const redis = new Redis(port, '127.0.0.1');
  redis.on('error', () => {});
  try {
    await until(async () => (await redis.info('replication').catch(() => '')).includes(words), PATIENCE);
  } finally {
    redis.disconnect();
  }
}
