import { MAIN_CASE } from '../cases.ts';
import type { BenchOptions } from '../options.ts';
import { moveTo } from '../setup/cores.ts';
import type { TollgateCandidate } from '../setup/tollgate.ts';
import type { World } from '../setup/world.ts';
import { RedisProbe } from './redis-counts.ts';
import { type Round, runRound } from './round.ts';
import { warmUp } from './run-cases.ts';
import { shuffled } from './statistics.ts';

/** How many processes share the port. */
export const WORKER_COUNTS = [1, 2] as const;
export type WorkerCount = (typeof WORKER_COUNTS)[number];

/** One run of the main case's load against a replica with so many processes; its CPU is that of all of them, the primary one too. */
export interface WorkersRound extends Round {
  readonly workers: WorkerCount;
}

/**
 * A replica of one process and a replica of two take turns in random order. Nothing is pinned: the load, the backend and Redis may run on
 * every core, as the gateway may. On two cores what they need is missing to the second worker.
 */
export async function measureWorkers(
  world: World,
  options: BenchOptions,
  say: (text: string) => void,
): Promise<readonly WorkersRound[]> {
  const { cores, programs, backend, redis } = world;
  const moved = [process.pid, redis.pid, ...backend.pids()];
  const replicas: { readonly workers: WorkerCount; readonly candidate: TollgateCandidate }[] = [];
  const probe = new RedisProbe(redis.port);
  const rounds: WorkersRound[] = [];
  await moveTo(cores.all, moved, programs.taskset);
  try {
    for (const workers of WORKER_COUNTS) {
      replicas.push({ workers, candidate: await world.startReplica({ workers, cores: cores.all }) });
    }
    for (const { workers, candidate } of replicas) {
      // Each process has to compile what runs often.
      for (let worker = 0; worker < workers; worker += 1) await warmUp(world, MAIN_CASE, candidate.port);
    }
    for (let round = 0; round < options.workerRounds; round += 1) {
      for (const { workers, candidate } of shuffled(replicas)) {
        const result = await runRound(world, probe, { benchCase: MAIN_CASE, candidate, round }, options);
        if (result.fault !== undefined) say(`void: WORKERS=${workers}: ${result.fault}`);
        rounds.push({ ...result, workers });
      }
    }
    return rounds;
  } finally {
    probe.close();
    for (const { candidate } of replicas) await candidate.stop();
    await moveTo(cores.others, moved, programs.taskset);
  }
}
