import type { BenchCase } from '../cases.ts';
import { runLoad } from '../load/run-load.ts';
import type { BenchOptions } from '../options.ts';
import type { Candidate } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';
import { countWithPerf } from './perf-counts.ts';

/** Counts with almost no noise, of a candidate's processes, per request. Null = not to be had on this machine. */
export interface EventCounts {
  readonly syscalls: number | null;
  /** Instructions, the kernel's included. */
  readonly instructions: number | null;
}

const NONE: EventCounts = { syscalls: null, instructions: null };

/** Counts while a load runs, in a separate run, because counting costs the counted process time. */
export async function countEvents(
  world: World,
  candidate: Candidate,
  benchCase: BenchCase,
  { warmUpSeconds, seconds }: BenchOptions,
): Promise<EventCounts> {
  const { perf } = world.programs;
  const load = { benchCase, port: candidate.port };
  await runLoad(world, { ...load, seconds: 2 * warmUpSeconds });
  if (perf === undefined) return NONE;
  let requests = 0;
  const counted = { pids: candidate.pids(), events: ['raw_syscalls:sys_enter', 'instructions'] };
  const counts = await countWithPerf(perf, counted, async () => {
    requests = (await runLoad(world, { ...load, seconds })).requests;
  });
  const [syscalls = null, instructions = null] = counted.events.map((event) => {
    const count = counts.get(event) ?? Number.NaN;
    return Number.isFinite(count) ? count / requests : null;
  });
  return { syscalls, instructions };
}
