import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { onRedis, untilReplicating } from './on-redis.ts';
import { type RedisServer, runRedis, startRedisServer } from './redis-server.ts';
import { startTogether } from './stops.ts';
import { until } from './until.ts';

/** A sentinel of a test's own. */
export interface RedisSentinel {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a sentinel that watches the master at a port, or at `host port`, under a name, with further lines of configuration. Resolves when it responds. */
export async function startSentinel(
  masterName: string,
  master: number | string,
  configuration: readonly string[] = [],
): Promise<RedisSentinel> {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-sentinel-'));
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${masterName} ${typeof master === 'number' ? `127.0.0.1 ${master}` : master} 1`,
  ];
  await writeFile(file, `${[...lines, ...configuration].join('\n')}\n`);
  const { stop } = await runRedis({ directory, port }, [file, '--sentinel']);
  return { port, stop };
}

/** A master, its standby, and three sentinels that promote the standby when the master fails. */
export interface WatchedRedis {
  /** As `REDIS_URL` has it, with `REDIS_MODE=sentinel`. */
  readonly url: string;
  readonly master: RedisServer;
  readonly standby: RedisServer;
  readonly sentinels: readonly RedisSentinel[];
  stop(): Promise<void>;
}

/** What a sentinel says of the master once it knows of the standby and of the others. */
const COMPLETE = { 'num-slaves': '1', 'num-other-sentinels': '2' };

/** Resolves when the standby has what the master has, and the sentinels know of it and of each other. A master that is silent for a second is down. */
export async function startWatchedRedis(masterName: string): Promise<WatchedRedis> {
  return startTogether(async (stops) => {
    const master = await startRedisServer();
    stops.push(() => master.stop());
    const standby = await startRedisServer(['--replicaof', `127.0.0.1 ${master.port}`]);
    stops.push(() => standby.stop());
    await untilReplicating(standby.url);
    const sentinels: RedisSentinel[] = [];
    for (const _ of [1, 2, 3]) {
      const sentinel = await startSentinel(masterName, master.port, [
        `sentinel down-after-milliseconds ${masterName} 1000`,
        `sentinel failover-timeout ${masterName} 5000`,
      ]);
      stops.push(() => sentinel.stop());
      sentinels.push(sentinel);
    }
    await onRedis(`redis://127.0.0.1:${sentinels[0]?.port}`, (watcher) =>
      until(async () => {
        const [state = []] = (await watcher.call('SENTINEL', 'MASTERS')) as string[][];
        return Object.entries(COMPLETE).every(([name, value]) => state[state.indexOf(name) + 1] === value);
      }),
    );
    const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
    return { url: `redis://${addresses}/${masterName}`, master, standby, sentinels };
  });
}
