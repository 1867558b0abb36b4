import { setTimeout as wait } from 'node:timers/promises';
import { untilReplicating } from '../../support/on-redis.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startWatchedRedis } from '../../support/redis-sentinel.ts';
import type { RedisServer } from '../../support/redis-server.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { FragileRedis } from './fragile-redis.ts';

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
      await untilReplicating(next.url, 'role:master');
    } finally {
      old.resume();
    }
    await untilReplicating(old.url);
    [master, standby] = [next, old];
  };
}
