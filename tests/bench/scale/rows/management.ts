import { residentBytes } from '../../measure/process-counts.ts';
import { decimal } from '../../report/table.ts';
import type { TollgateCandidate } from '../../setup/tollgate.ts';
import { metricOf } from '../counts.ts';
import { TASKS } from '../management-tasks.ts';
import { grouped, megabytes, type RowResult, type ScaleRow, type Verdict } from '../row.ts';
import type { ScaleWorld } from '../scale-world.ts';

const MOST_HELD_MS = 50;
const MOST_BYTES = 64e6;
/** A task is linear in what it returns if its second half takes no more than so many times its first. */
const MOST_TIMES = 1.5;
const SAMPLE_MS = 10;
const EVENT_LOOP = 'tollgate_event_loop_delay_seconds{statistic="max"';

interface Measured {
  readonly title: string;
  readonly returned: string;
  readonly seconds: number;
  readonly bytes: number;
  readonly heldMs: number;
  readonly halves: number | undefined;
  readonly verdict: Verdict | undefined;
}

/** Everything that the management interface can be asked for, with all keys in Postgres. */
export const MANAGEMENT: ScaleRow = {
  name: 'management',
  title: 'Management',
  measure: async (world) => {
    await world.haveKeys(world.size.keys);
    const replica = await world.startReplica();
    try {
      // Usage to show, and a process that has its usual size.
      await world.load({
        port: replica.port,
        seconds: 2 * world.size.seconds,
        keys: world.size.keys,
        law: 'zipf',
      });
      const measured: Measured[] = [];
      for (const task of TASKS) {
        world.say(`  ${task.title}`);
        measured.push(
          await measureTask(world, replica, task).catch((error: unknown) => failedTask(task.title, error)),
        );
      }
      return resultOf(measured);
    } finally {
      await replica.stop();
    }
  },
};

/** The other tasks go on. */
function failedTask(title: string, error: unknown): Measured {
  const reason = error instanceof Error ? error.message : String(error);
  const verdict = { budget: title, measured: `failed: ${reason.slice(0, 100)}`, holds: false };
  const unknown = { seconds: Number.NaN, bytes: 0, heldMs: 0, halves: undefined };
  return { ...unknown, title, returned: 'failed', verdict };
}

async function measureTask(
  world: ScaleWorld,
  replica: TollgateCandidate,
  task: (typeof TASKS)[number],
): Promise<Measured> {
  // The metric begins again with each scrape.
  await metricOf(replica, EVENT_LOOP);
  const idle = residentBytes(replica.pids());
  let most = idle;
  const sampling = setInterval(() => {
    most = Math.max(most, residentBytes(replica.pids()));
  }, SAMPLE_MS);
  const startedAtMs = performance.now();
  try {
    const { returned, halves, verdict } = await task.perform(world, replica);
    return {
      ...{ title: task.title, returned, halves, verdict },
      seconds: (performance.now() - startedAtMs) / 1000,
      bytes: most - idle,
      heldMs: 1000 * (await metricOf(replica, EVENT_LOOP)),
    };
  } finally {
    clearInterval(sampling);
  }
}

function resultOf(measured: readonly Measured[]): RowResult {
  const worst = (of: (one: Measured) => number) =>
    measured.reduce((most, one) => (of(one) > of(most) ? one : most));
  const slow = worst(({ heldMs }) => heldMs);
  const large = worst(({ bytes }) => bytes);
  const uneven = worst(({ halves = 0 }) => halves);
  return {
    heads: [
      'what',
      'returned',
      'time s',
      'event loop held ms',
      'memory beyond idle MB',
      'second half ÷ first',
    ],
    rows: measured.map(({ title, returned, seconds, heldMs, bytes, halves }) => [
      ...[title, returned, decimal(seconds, 2), decimal(heldMs, 0), megabytes(bytes)],
      decimal(halves ?? Number.NaN, 2),
    ]),
    verdicts: [
      {
        budget: `event loop held ≤ ${MOST_HELD_MS} ms`,
        measured: `${decimal(slow.heldMs, 0)} ms: ${slow.title}`,
        holds: slow.heldMs <= MOST_HELD_MS,
      },
      {
        budget: `memory ≤ ${megabytes(MOST_BYTES)} MB beyond idle`,
        measured: `${megabytes(large.bytes)} MB: ${large.title}`,
        holds: large.bytes <= MOST_BYTES,
      },
      {
        budget: `linear in what it returns: the second half ≤ ${MOST_TIMES} × the first`,
        measured: `${decimal(uneven.halves ?? Number.NaN, 2)} ×: ${uneven.title}`,
        holds: (uneven.halves ?? 0) <= MOST_TIMES,
      },
      ...measured.flatMap(({ verdict }) => verdict ?? []),
    ],
    notes: [
      `${grouped(measured.length)} tasks, one after the other, at one replica. Its event loop is watched by itself (\`tollgate_event_loop_delay_seconds\`): what a busy machine takes from it is in the figures too. \`rotate-encryption-key\` is a process beside it.`,
    ],
  };
}
