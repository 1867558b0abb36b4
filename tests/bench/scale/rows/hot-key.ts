import { runFixedRate } from '../../load/fixed-rate.ts';
import type { LoadResult } from '../../load/run-load.ts';
import { cpuNs } from '../../measure/process-counts.ts';
import { median } from '../../measure/statistics.ts';
import { decimal } from '../../report/table.ts';
import type { BenchKey } from '../../setup/candidate.ts';
import { manage } from '../../setup/keys.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { grouped, type RowResult, type ScaleRow } from '../row.ts';
import { secretOf } from '../scale-keys.ts';
import type { ScaleWorld } from '../scale-world.ts';

const KEYS = 1000;
const REPLICAS = 4;
/** The limit of the hot key for the day: less than its requests. */
const LIMIT = 5000;
const OTHERS_PER_SECOND = 100;
const MOST_TIMES = 2;
/** Of the load of the hot key, over all replicas. */
const CONNECTIONS = 32;

interface Phase {
  readonly redisCpuUs: number;
  readonly othersP99Ms: number;
  readonly othersFailed: number;
  readonly allowed: number;
  readonly limited: number;
}

/** The load of many keys comes from one: what that changes for Redis, for its limit and for the others. */
export const HOT_KEY: ScaleRow = {
  name: 'hot-key',
  title: 'One hot key',
  measure: async (world) => {
    await world.haveKeys(KEYS);
    const replicas: TollgateCandidate[] = [];
    try {
      while (replicas.length < REPLICAS) replicas.push(await world.startReplica());
      return await measure(world, replicas);
    } finally {
      for (const replica of replicas) await replica.stop();
    }
  },
};

async function measure(world: ScaleWorld, replicas: readonly TollgateCandidate[]): Promise<RowResult> {
  const phase = async (hot: string | undefined): Promise<Phase> => {
    const keys: readonly BenchKey[] = Array.from({ length: 100 }, (_, n) => ({
      ...{ id: '', secret: secretOf(KEYS - 1 - n), limit: 0 },
    }));
    const before = cpuNs([world.redis.pid]);
    const { seconds } = world.size;
    const [others, ...loads] = await Promise.all([
      runFixedRate({
        ...{ port: replicas[0]?.port ?? 0, keys, path: '/v1/items', seconds },
        ratePerSecond: OTHERS_PER_SECOND,
      }),
      ...replicas.map(({ port }) =>
        world.load({
          ...{ port, seconds, connections: CONNECTIONS / REPLICAS },
          ...(hot === undefined ? { keys: 100 } : { keys: 1, secrets: [hot] }),
        }),
      ),
    ]);
    const sum = (of: (load: LoadResult) => number) => loads.reduce((total, load) => total + of(load), 0);
    const requests = sum((load) => load.requests);
    return {
      redisCpuUs: (cpuNs([world.redis.pid]) - before) / 1000 / (requests + others.requests),
      othersP99Ms: others.latenciesMs[Math.ceil(0.99 * others.latenciesMs.length) - 1] ?? Number.NaN,
      othersFailed: others.broken + others.limited,
      allowed: requests - sum(({ limited }) => limited),
      limited: sum(({ limited }) => limited),
    };
  };
  const [spread, hot]: [Phase[], Phase[]] = [[], []];
  const ample = await makeHotKey(replicas, 1_000_000_000);
  await phase(undefined);
  for (let round = 0; round < world.size.rounds; round += 1) {
    spread.push(await phase(undefined));
    hot.push(await phase(ample));
  }
  const counted = await measureExactness(replicas);
  const of = (phases: readonly Phase[], number: keyof Phase) => median(phases.map((one) => one[number]));
  const times = of(hot, 'othersP99Ms') / of(spread, 'othersP99Ms');
  const failed = [...spread, ...hot].reduce((sum, { othersFailed }) => sum + othersFailed, 0);
  const row = (name: string, phases: readonly Phase[]) => [
    ...[name, decimal(of(phases, 'redisCpuUs')), decimal(of(phases, 'othersP99Ms'))],
    grouped(of(phases, 'allowed')),
  ];
  return {
    heads: ['load', 'Redis CPU µs a request', 'p99 of others, ms', 'requests of the load'],
    rows: [row('from 100 keys', spread), row('from one key', hot)],
    verdicts: [
      {
        budget: `exact: a key with ${grouped(LIMIT)} a day, over ${REPLICAS} replicas`,
        measured: `${grouped(counted.allowed)} allowed of ${grouped(counted.sent)}`,
        holds: counted.allowed === LIMIT,
      },
      { budget: `p99 of others ≤ ${MOST_TIMES} ×`, measured: decimal(times, 2), holds: times <= MOST_TIMES },
      { budget: 'no request of others lost', measured: `${failed} failed`, holds: failed === 0 },
    ],
    notes: [
      `The others are 100 keys with ${OTHERS_PER_SECOND} requests a second, beside as many requests as come through.`,
    ],
  };
}

async function makeHotKey([first]: readonly TollgateCandidate[], limit: number): Promise<string> {
  const port = first?.port ?? 0;
  const rateLimitId = `hot-${limit}`;
  await manage(port, ['POST', '/rate-limit/create'], { rateLimitId, description: '', limit, period: 'day' });
  const { secret } = await manage<{ readonly secret: string }>(port, ['POST', '/consumer-api-key/create'], {
    ...{ name: 'hot', rateLimitId },
  });
  return secret;
}

/** Sends more than the limit through all replicas and counts the responses that were allowed, the last ones too. */
async function measureExactness(
  replicas: readonly TollgateCandidate[],
): Promise<Record<'allowed' | 'sent', number>> {
  const secret = await makeHotKey(replicas, LIMIT);
  const results = await Promise.all(
    replicas.map(({ port }) =>
      runFixedRate({
        ...{ port, keys: [{ id: '', secret, limit: LIMIT }], path: '/v1/items' },
        ...{ ratePerSecond: LIMIT / 4, seconds: 2 },
      }),
    ),
  );
  const sum = (of: 'requests' | 'limited') => results.reduce((total, result) => total + result[of], 0);
  return { allowed: sum('requests') - sum('limited'), sent: sum('requests') };
}
