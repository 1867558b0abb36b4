import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { CANDIDATE_CORE } from './pinned-process.ts';

const run = promisify(execFile);

/** The machine's cores, as taskset writes them. */
export interface Cores {
  readonly count: number;
  readonly all: string;
  /** All but the candidates' one: where the bench, the load, the backend and the stores run. */
  readonly others: string;
}

/** Call it before anything is moved: Node tells how many cores it may use. */
export function findCores(): Cores {
  const count = availableParallelism();
  return { count, all: `0-${count - 1}`, others: `${CANDIDATE_CORE + 1}-${count - 1}` };
}

/** Moves processes with all of their threads, and what they start from now on. */
export async function moveTo(cores: string, pids: readonly number[], taskset: string): Promise<void> {
  for (const pid of pids) await run(taskset, ['-a', '-p', '-c', cores, String(pid)]);
}
