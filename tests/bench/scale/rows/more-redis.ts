import { type RedisCluster, startRedisCluster } from '../../../support/redis-cluster.ts';
import { type RedisServer, startRedisServer } from '../../../support/redis-server.ts';
import { type Stops, stopAll } from '../../../support/stops.ts';
import { decimal } from '../../report/table.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { redisCommands } from '../counts.ts';
import { grouped, type RowResult, type ScaleRow, verdictOnRatio } from '../row.ts';
import type { ScaleWorld } from '../scale-world.ts';
import { medianTurn, ratioOfTurns, spreadOfPair, takeTurns } from '../take-turns.ts';

const MASTERS = [1, 3, 6];
/** Keys in use, and the most that a cluster may cost beside one server. */
const BUDGETS = [
  { keys: 100, most: 1.15 },
  { keys: 10_000, most: 1.25 },
];
const SINGLE = 'one server';
const AGAIN = 'one server, again';

/** Servers that hold the counters of one replica. */
interface Setup {
  readonly name: string;
  readonly servers: readonly Pick<RedisServer, 'pid' | 'url'>[];
  readonly replica: TollgateCandidate;
}

/** One Redis beside clusters of 1, 3 and 6 masters. */
export const MORE_REDIS: ScaleRow = {
  name: 'more-redis',
  title: 'More Redis',
  measure: async (world) => {
    await world.haveKeys(Math.max(...BUDGETS.map(({ keys }) => keys)));
    const stops: Stops = [];
    try {
      return await measure(world, await startSetups(world, stops));
    } finally {
      await stopAll(stops);
    }
  },
};

async function startSetups(world: ScaleWorld, stops: Stops): Promise<readonly Setup[]> {
  const setups: Setup[] = [];
  const add = async (name: string, servers: Setup['servers'], settings: Record<string, string>) => {
    const replica = await world.startReplica(settings);
    stops.push(replica.stop);
    setups.push({ name, servers, replica });
  };
  for (const name of [SINGLE, AGAIN]) {
    const server = await startRedisServer();
    stops.push(server.stop);
    await add(name, [server], { REDIS_URL: server.url });
  }
  for (const masters of MASTERS) {
    const cluster: RedisCluster = await startRedisCluster(masters);
    stops.push(cluster.stop);
    const servers = cluster.primaries.map(({ server }) => server);
    await add(nameOf(masters), servers, { REDIS_URL: cluster.url, REDIS_MODE: 'cluster' });
  }
  return setups;
}

function nameOf(masters: number): string {
  return `cluster of ${masters}`;
}

async function measure(world: ScaleWorld, setups: readonly Setup[]): Promise<RowResult> {
  const rows: string[][] = [];
  const verdicts: RowResult['verdicts'][number][] = [];
  const spreads: number[] = [];
  const lines: Record<string, number[]> = {};
  for (const { keys, most } of BUDGETS) {
    const before = await Promise.all(setups.map(({ servers }) => commandsOf(servers)));
    const turns = await takeTurns(
      setups.map(({ name, servers, replica }) => ({
        ...{ name, pids: replica.pids, redisPids: servers.map(({ pid }) => pid) },
        run: (seconds: number) => world.load({ port: replica.port, seconds, keys }),
      })),
      world.size,
    );
    const base = turns[SINGLE] ?? [];
    const spread = spreadOfPair(turns[AGAIN] ?? [], base);
    spreads.push(spread);
    for (const [index, { name, servers }] of setups.entries()) {
      const ratio = ratioOfTurns(turns[name] ?? [], base);
      const { cpuUs, redisCpuUs } = medianTurn(turns[name] ?? []);
      const counts = (await commandsOf(servers)).map(
        (count, server) => count - (before[index]?.[server] ?? 0),
      );
      rows.push([
        ...[grouped(keys), name, decimal(cpuUs), decimal(ratio.median, 2), decimal(redisCpuUs)],
        counts.length === 1 ? '–' : decimal(Math.max(...counts) / (sumOf(counts) / counts.length), 2),
      ]);
      if (name === SINGLE || name === AGAIN) continue;
      verdicts.push(verdictOnRatio(`${name}, ${grouped(keys)} keys: CPU`, ratio, most, spread));
    }
    lines[`${grouped(keys)} keys`] = [SINGLE, ...MASTERS.map(nameOf)].map((name) =>
      Number(medianTurn(turns[name] ?? []).cpuUs.toFixed(1)),
    );
  }
  return {
    heads: ['keys in use', 'Redis', 'CPU µs a request', '× one server', 'Redis CPU µs a request'].concat(
      'busiest master × mean',
    ),
    ...{ rows, verdicts, spread: Math.max(...spreads) },
    plots: [
      {
        ...{ name: 'more-redis', title: 'CPU of the gateway, µs a request', xName: 'Redis', lines },
        xs: [SINGLE, ...MASTERS.map(nameOf)],
      },
    ],
  };
}

function commandsOf(servers: Setup['servers']): Promise<readonly number[]> {
  return Promise.all(servers.map(({ url }) => redisCommands(url)));
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
