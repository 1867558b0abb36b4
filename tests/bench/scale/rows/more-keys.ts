import { onRedis } from '../../../support/on-redis.ts';
import { residentBytes } from '../../measure/process-counts.ts';
import type { Spread } from '../../measure/statistics.ts';
import { decimal } from '../../report/table.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { metricOf, numberOf, transactions } from '../counts.ts';
import { grouped, megabytes, type RowResult, type ScaleRow, verdictOnRatio } from '../row.ts';
import type { ScaleWorld } from '../scale-world.ts';
import { medianTurn, ratioOfTurns, spreadOfPair, type Turns, takeTurns } from '../take-turns.ts';

const FEW = 1000;
const SHARES = [0.1, 1];
/** Cached keys from which on their memory is more than chance. */
const ENOUGH_CACHED = 50_000;
const MOST_RATIO = 1.3;
const MOST_BYTES = 400e6;
const DATABASE_BYTES = 'SELECT pg_database_size(current_database())';
const USAGE_BYTES = `SELECT sum(pg_total_relation_size(inhrelid)) / greatest(1, (SELECT count(*) FROM usage_hours))
  FROM pg_inherits WHERE inhparent = 'usage_hours'::regclass`;

/** Of one number of keys in Postgres. */
interface AtSize {
  readonly keys: number;
  readonly importedPerSecond: number;
  readonly databaseBytes: number;
  readonly redisBytesPerKey: number;
  readonly usageRowBytes: number;
  readonly turns: Turns<'all' | 'few' | 'again'>;
  readonly ratio: Spread;
  readonly spread: number;
  readonly cachedKeys: number;
  readonly hitShare: number;
  readonly queriesPerSecond: number;
  readonly bytes: number;
  readonly fewBytes: number;
}

/** 1 000 keys in Postgres, and 100 and 1000 times as many, with requests by a Zipf law. */
export const MORE_KEYS: ScaleRow = {
  name: 'more-keys',
  title: 'More keys',
  measure: async (world) => {
    const sizes: AtSize[] = [];
    for (const keys of [FEW, ...SHARES.map((share) => share * world.size.keys)]) {
      sizes.push(await measureAt(world, keys));
    }
    return resultOf(sizes);
  },
};

async function measureAt(world: ScaleWorld, keys: number): Promise<AtSize> {
  const { imported, seconds } = await world.haveKeys(keys);
  const databaseBytes = await numberOf(world.postgres, DATABASE_BYTES);
  const replicas: TollgateCandidate[] = [];
  try {
    for (let count = 0; count < 3; count += 1) replicas.push(await world.startReplica());
    const [all, few, again] = replicas;
    if (all === undefined || few === undefined || again === undefined) throw new Error('no replicas');
    const contestant = <Name extends string>(name: Name, replica: TollgateCandidate, of: number) => ({
      ...{ name, pids: replica.pids, redisPids: [world.redis.pid] },
      run: (runSeconds: number) =>
        world.load({ port: replica.port, seconds: runSeconds, keys: of, law: 'zipf' }),
    });
    const redisBefore = await redisMemory(world);
    // Until the cache has what it will have of these keys.
    for (let run = 0; run < world.size.rounds; run += 1)
      await contestant('all', all, keys).run(world.size.seconds);
    const redisAfter = await redisMemory(world);
    const before = { at: performance.now(), count: await transactions(world.postgres) };
    const hitsBefore = await lookUps(all);
    const turns = await takeTurns(
      [contestant('all', all, keys), contestant('few', few, FEW), contestant('again', again, FEW)],
      world.size,
    );
    const elapsed = (performance.now() - before.at) / 1000;
    const hitsAfter = await lookUps(all);
    const hits = hitsAfter.hits - hitsBefore.hits;
    return {
      ...{ keys, importedPerSecond: imported / seconds, databaseBytes, turns },
      redisBytesPerKey: (redisAfter.bytes - redisBefore.bytes) / (redisAfter.windows - redisBefore.windows),
      usageRowBytes: await numberOf(world.postgres, USAGE_BYTES),
      ratio: ratioOfTurns(turns.all, turns.few),
      spread: spreadOfPair(turns.again, turns.few),
      cachedKeys: await metricOf(all, 'tollgate_key_cache_entries'),
      hitShare: hits / (hits + hitsAfter.misses - hitsBefore.misses),
      queriesPerSecond: ((await transactions(world.postgres)) - before.count) / elapsed,
      bytes: residentBytes(all.pids()),
      fewBytes: residentBytes(few.pids()),
    };
  } finally {
    for (const replica of replicas) await replica.stop();
  }
}

async function lookUps(replica: TollgateCandidate): Promise<Record<'hits' | 'misses', number>> {
  return {
    hits: await metricOf(replica, 'tollgate_key_cache_lookups_total{result="hit"'),
    misses: await metricOf(replica, 'tollgate_key_cache_lookups_total{result="miss"'),
  };
}

/** What Redis holds, and how many windows of keys. */
function redisMemory({ redis: { url } }: ScaleWorld): Promise<Record<'bytes' | 'windows', number>> {
  return onRedis(url, async (redis) => {
    let windows = 0;
    for await (const names of redis.scanStream({ match: 'tg:*:window:*', count: 5000 }))
      windows += (names as readonly string[]).length;
    const bytes = Number(/^used_memory_dataset:(\d+)/m.exec(await redis.info('memory'))?.[1]);
    return { bytes, windows };
  });
}

function resultOf(sizes: readonly AtSize[]): RowResult {
  const first = sizes[0];
  const last = sizes.at(-1);
  if (first === undefined || last === undefined) throw new Error('no sizes');
  const spread = Math.max(...sizes.map((one) => one.spread));
  const { cpuUs, redisCpuUs } = medianTurn(last.turns.all);
  const cpuOf = (name: 'all' | 'few') =>
    sizes.map(({ turns }) => Number(medianTurn(turns[name]).cpuUs.toFixed(1)));
  return {
    heads: [
      'keys in Postgres',
      'imported/s',
      'CPU µs a request',
      '× with 1 000 in use',
      'cached keys',
    ].concat(['cache hits %', 'Postgres queries/s', 'RSS MB', 'failed requests']),
    rows: sizes.map((one) => [
      grouped(one.keys),
      Number.isFinite(one.importedPerSecond) ? grouped(one.importedPerSecond) : '–',
      decimal(medianTurn(one.turns.all).cpuUs),
      decimal(one.ratio.median, 2),
      grouped(one.cachedKeys),
      decimal(100 * one.hitShare),
      decimal(one.queriesPerSecond),
      megabytes(one.bytes),
      String(medianTurn(one.turns.all).failed),
    ]),
    spread,
    verdicts: [
      verdictOnRatio(
        `CPU with ${grouped(last.keys)} keys`,
        last.ratio,
        ...([MOST_RATIO, last.spread] as const),
      ),
      {
        budget: `RSS ≤ ${megabytes(MOST_BYTES)} MB`,
        measured: `${megabytes(last.bytes)} MB`,
        holds: last.bytes <= MOST_BYTES,
      },
    ],
    notes: [
      `The queries are those of three replicas together: one whose clients use all keys, and two whose clients use ${grouped(FEW)}. A replica caches at most 100 000 keys.`,
    ],
    plots: [
      {
        ...{ name: 'more-keys', title: 'CPU of the gateway, µs a request', xName: 'keys in Postgres' },
        xs: sizes.map(({ keys }) => grouped(keys)),
        lines: { 'all of them in use': cpuOf('all'), '1 000 of them in use': cpuOf('few') },
      },
    ],
    constants: {
      ...{ cpuMicrosecondsPerRequest: cpuUs, redisMicrosecondsPerRequest: redisCpuUs },
      // With fewer, the difference is that of two heaps.
      ...(last.cachedKeys > ENOUGH_CACHED && {
        residentBytesPerCachedKey: (last.bytes - last.fewBytes) / (last.cachedKeys - FEW),
      }),
      redisBytesPerActiveKeyWindow: last.redisBytesPerKey,
      postgresBytesPerKey: (last.databaseBytes - first.databaseBytes) / (last.keys - first.keys),
      postgresBytesPerUsageRow: last.usageRowBytes,
    },
  };
}
