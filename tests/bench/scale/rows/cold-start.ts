import { setTimeout as wait } from 'node:timers/promises';
import { median } from '../../measure/statistics.ts';
import { decimal } from '../../report/table.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { metricOf, transactions } from '../counts.ts';
import { grouped, type RowResult, type ScaleRow } from '../row.ts';
import type { ScaleWorld } from '../scale-world.ts';

const MOST_SECONDS = 60;
const SLICE_SECONDS = 1;
/** The p99 of a slice may be so many times that of a warm replica. */
const MOST_TIMES = 2;
/** A replica is warm when so many slices in turn were within that. */
const WARM_SLICES = 3;
/** Of the warm replica: so many until it is warm, and as many that count. */
const SLICES_OF_WARM = 5;

interface Slice {
  readonly p99Ms: number;
  readonly requestsPerSecond: number;
  readonly failed: number;
  readonly queriesPerSecond: number;
}

/** A replica that starts into all keys and gets as many requests as come through from its first second on. */
export const COLD_START: ScaleRow = {
  name: 'cold-start',
  title: 'Cold start',
  measure: async (world) => {
    await world.haveKeys(world.size.keys);
    const warm = await world.startReplica();
    const slices: Slice[] = [];
    try {
      while (slices.length < 2 * SLICES_OF_WARM) slices.push(await slice(world, warm));
    } finally {
      await warm.stop();
    }
    // Statistics of Postgres are up to a second late.
    await wait(1000);
    const warmP99Ms = median(slices.slice(-SLICES_OF_WARM).map(({ p99Ms }) => p99Ms));
    const startedAtMs = performance.now();
    const cold = await world.startReplica();
    const startMs = performance.now() - startedAtMs;
    try {
      return resultOf(await untilWarm(world, cold, MOST_TIMES * warmP99Ms), {
        ...{ warmP99Ms, startMs, keys: world.size.keys },
        cachedKeys: await metricOf(cold, 'tollgate_key_cache_entries'),
      });
    } finally {
      await cold.stop();
    }
  },
};

async function untilWarm(
  world: ScaleWorld,
  replica: TollgateCandidate,
  mostMs: number,
): Promise<readonly Slice[]> {
  const slices: Slice[] = [];
  for (let seconds = 0; seconds < MOST_SECONDS; seconds += SLICE_SECONDS) {
    slices.push(await slice(world, replica));
    const last = slices.slice(-WARM_SLICES);
    if (last.length === WARM_SLICES && last.every(({ p99Ms }) => p99Ms <= mostMs)) break;
  }
  return slices;
}

async function slice(world: ScaleWorld, { port }: TollgateCandidate): Promise<Slice> {
  const [before, startedAtMs] = [await transactions(world.postgres), performance.now()];
  const load = await world.load({ port, seconds: SLICE_SECONDS, keys: world.size.keys, law: 'zipf' });
  const seconds = (performance.now() - startedAtMs) / 1000;
  return {
    p99Ms: load.p99Us / 1000,
    requestsPerSecond: (load.requests / load.durationUs) * 1e6,
    failed: load.limited + load.broken,
    queriesPerSecond: ((await transactions(world.postgres)) - before) / seconds,
  };
}

function resultOf(
  slices: readonly Slice[],
  { warmP99Ms, startMs, keys, cachedKeys }: Record<'warmP99Ms' | 'startMs' | 'keys' | 'cachedKeys', number>,
): RowResult {
  const firstWarm = slices.findLastIndex(({ p99Ms }) => p99Ms > MOST_TIMES * warmP99Ms) + 1;
  const isWarm = firstWarm < slices.length;
  const seconds = firstWarm * SLICE_SECONDS;
  const failed = slices.reduce((sum, slice) => sum + slice.failed, 0);
  const mostQueries = Math.max(...slices.map(({ queriesPerSecond }) => queriesPerSecond));
  return {
    heads: ['keys in Postgres', 'warm p99 ms', 'start to ready s', 'until p99 ≤ 2 × warm, s'].concat([
      'requests that failed',
      'most Postgres queries/s',
      'keys cached then',
    ]),
    rows: [
      [
        ...[grouped(keys), decimal(warmP99Ms), decimal(startMs / 1000), isWarm ? String(seconds) : '–'],
        ...[String(failed), grouped(mostQueries), grouped(cachedKeys)],
      ],
    ],
    verdicts: [
      {
        budget: `within 2 × of the warm p99 after ≤ ${MOST_SECONDS} s`,
        measured: isWarm ? `${seconds} s` : `not after ${slices.length} s`,
        holds: isWarm,
      },
      { budget: 'no request lost', measured: `${failed} failed`, holds: failed === 0 },
    ],
    plots: [
      {
        ...{ name: 'cold-start', title: 'p99 of a replica that just started, ms', xName: 'seconds of load' },
        xs: slices.map((_, index) => index + 1),
        lines: {
          'just started': slices.map(({ p99Ms }) => Number(p99Ms.toFixed(1))),
          warm: slices.map(() => Number(warmP99Ms.toFixed(1))),
        },
      },
    ],
    notes: [
      'A replica reads the keys of concurrent requests in one query, so that queries stay far below requests.',
    ],
  };
}
