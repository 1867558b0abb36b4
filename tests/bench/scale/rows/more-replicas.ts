import { setTimeout as wait } from 'node:timers/promises';
import type { LoadResult } from '../../load/run-load.ts';
import { residentBytes } from '../../measure/process-counts.ts';
import { decimal } from '../../report/table.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { gatewayConnections, redisCommands, redisInfo } from '../counts.ts';
import { megabytes, type RowResult, type ScaleRow, verdictOnRatio } from '../row.ts';
import type { ScaleWorld } from '../scale-world.ts';
import { medianTurn, ratioOfTurns, spreadOfPair, takeTurns } from '../take-turns.ts';

const COUNTS = [1, 2, 4, 8, 16];
/** Of all replicas together, so that the load is the same for each number of them. */
const CONNECTIONS = 1024;
const KEYS = 100;
const IDLE_SECONDS = 5;
const QUICK_IDLE_SECONDS = 3;
const MOST_RATIO = 1.15;
const MOST_IDLE_COMMANDS = 35;

/** What a number of replicas takes without requests. */
interface Idle {
  readonly commandsPerSecond: number;
  readonly redisConnections: number;
  readonly postgresConnections: number;
  readonly bytesEach: number;
}

/** One total load on 1 to 16 replicas. */
export const MORE_REPLICAS: ScaleRow = {
  name: 'more-replicas',
  title: 'More replicas',
  measure: async (world) => {
    await world.haveKeys(KEYS);
    const replicas: TollgateCandidate[] = [];
    try {
      return await measure(world, replicas);
    } finally {
      for (const replica of replicas) await replica.stop();
    }
  },
};

async function measure(world: ScaleWorld, replicas: TollgateCandidate[]): Promise<RowResult> {
  const idle = new Map<number, Idle>();
  for (const count of COUNTS) {
    while (replicas.length < count) replicas.push(await world.startReplica());
    idle.set(count, await measureIdle(world, replicas));
  }
  const contestants = ['again', ...COUNTS.map(String)].map((name) => {
    const some = name === 'again' ? replicas.slice(1, 2) : replicas.slice(0, Number(name));
    return {
      name,
      pids: () => some.flatMap((replica) => replica.pids()),
      redisPids: [world.redis.pid],
      run: (seconds: number) => loadAll(world, some, seconds),
    };
  });
  const turns = await takeTurns(contestants, world.size);
  const loadedBytes = residentBytes(replicas.flatMap((replica) => replica.pids())) / replicas.length;
  const base = turns['1'] ?? [];
  const spread = spreadOfPair(turns.again ?? [], base);
  const rows = COUNTS.map((count) => rowOf(count, idle.get(count), { turns: turns[count] ?? [], base }));
  const largest = COUNTS.at(-1) ?? 1;
  const last = idle.get(largest);
  const commands = (last?.commandsPerSecond ?? Number.NaN) / largest;
  const values = COUNTS.map((count) => Number(medianTurn(turns[count] ?? []).cpuUs.toFixed(1)));
  return {
    heads: ['replicas', 'CPU µs a request', '× 1 replica', 'Redis µs a request', 'p99 ms'].concat([
      'idle: Redis commands/s each',
      'Redis connections',
      'Postgres connections',
      'RSS MB each',
    ]),
    ...{ rows, spread },
    verdicts: [
      verdictOnRatio(
        `CPU a request at ${largest} replicas`,
        ratioOfTurns(turns[largest] ?? [], base),
        ...([MOST_RATIO, spread] as const),
      ),
      {
        budget: `idle ≤ ${MOST_IDLE_COMMANDS} Redis commands a second and replica`,
        measured: decimal(commands),
        holds: commands <= MOST_IDLE_COMMANDS,
      },
    ],
    notes: [
      `${CONNECTIONS} connections of clients in all, shared by the replicas, which share one core. A replica with requests takes ${megabytes(loadedBytes)} MB.`,
    ],
    plots: [
      {
        ...{ name: 'more-replicas', title: 'CPU of all replicas, µs a request', xName: 'replicas' },
        ...{ xs: COUNTS, lines: { 'CPU µs': values } },
      },
    ],
    constants: {
      redisCommandsPerSecondIdlePerReplica: commands,
      residentBytesIdle: last?.bytesEach ?? Number.NaN,
      postgresConnectionsPerReplica: (last?.postgresConnections ?? Number.NaN) / largest,
    },
  };
}

async function measureIdle(world: ScaleWorld, replicas: readonly TollgateCandidate[]): Promise<Idle> {
  const { url } = world.redis;
  const seconds = world.size.rounds > 2 ? IDLE_SECONDS : QUICK_IDLE_SECONDS;
  const before = await redisCommands(url);
  await wait(seconds * 1000);
  return {
    commandsPerSecond: ((await redisCommands(url)) - before) / seconds,
    // Without the one that asks.
    redisConnections: (await redisInfo(url, 'connected_clients')) - 1,
    postgresConnections: await gatewayConnections(world.postgres),
    bytesEach: residentBytes(replicas.flatMap((replica) => replica.pids())) / replicas.length,
  };
}

async function loadAll(
  world: ScaleWorld,
  replicas: readonly TollgateCandidate[],
  seconds: number,
): Promise<LoadResult> {
  const connections = CONNECTIONS / replicas.length;
  const all = await Promise.all(
    replicas.map(({ port }) => world.load({ port, seconds, connections, keys: KEYS })),
  );
  const sum = (of: (one: LoadResult) => number) => all.reduce((total, one) => total + of(one), 0);
  const most = (of: (one: LoadResult) => number) => Math.max(...all.map(of));
  return {
    requests: sum(({ requests }) => requests),
    limited: sum(({ limited }) => limited),
    broken: sum(({ broken }) => broken),
    durationUs: most(({ durationUs }) => durationUs),
    p50Us: most(({ p50Us }) => p50Us),
    p99Us: most(({ p99Us }) => p99Us),
    p999Us: most(({ p999Us }) => p999Us),
  };
}

function rowOf(
  count: number,
  idle: Idle | undefined,
  { turns, base }: Record<'turns' | 'base', Parameters<typeof medianTurn>[0]>,
): readonly string[] {
  const { cpuUs, redisCpuUs, p99Ms } = medianTurn(turns);
  return [
    String(count),
    decimal(cpuUs),
    decimal(ratioOfTurns(turns, base).median, 2),
    decimal(redisCpuUs),
    decimal(p99Ms, 0),
    decimal((idle?.commandsPerSecond ?? Number.NaN) / count),
    String(idle?.redisConnections),
    String(idle?.postgresConnections),
    megabytes(idle?.bytesEach ?? Number.NaN),
  ];
}
