import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { BenchCase } from '../cases.ts';
import { runLoad } from '../load/run-load.ts';
import type { BenchOptions } from '../options.ts';
import type { Candidate } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';

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
  const counting = spawn(
    perf,
    ['stat', '-x', ';', '-e', 'raw_syscalls:sys_enter,instructions', '-p', candidate.pids().join(',')],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let text = '';
  counting.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await wait(200); // until it is attached
  const { requests } = await runLoad(world, { ...load, seconds });
  counting.kill('SIGINT');
  await once(counting, 'close');
  return {
    syscalls: perRequest(text, 'raw_syscalls:sys_enter', requests),
    instructions: perRequest(text, 'instructions', requests),
  };
}

function perRequest(text: string, event: string, requests: number): number | null {
  const line = text.split('\n').find((one) => one.split(';')[2]?.startsWith(event));
  const count = Number(line?.split(';')[0]);
  return Number.isFinite(count) ? count / requests : null;
}
