import { execFile } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { promisify } from 'node:util';
import type { Programs } from '../setup/programs.ts';

const run = promisify(execFile);

/** Where a result comes from. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  readonly nginx: string;
  /** Of the last minute, when the measurement ended; what the bench itself causes is part of it. */
  readonly loadAverage: number;
}

export async function describeMachine({ nginx }: Programs): Promise<Machine> {
  const { stderr } = await run(nginx, ['-v']);
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    nginx: /nginx\/(\S+)/.exec(stderr)?.[1] ?? 'unknown',
    loadAverage: loadavg()[0] ?? 0,
  };
}
