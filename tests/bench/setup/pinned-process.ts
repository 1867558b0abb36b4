import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { hasEnded, outputOf } from '../../support/end-child.ts';
import { until } from '../../support/until.ts';

/** The core that the candidates run on, one at a time. All else, the bench itself included, runs on the others. */
export const CANDIDATE_CORE = 0;

/** A process that the bench started. */
export interface PinnedProcess {
  /** It and its children, now. */
  pids(): readonly number[];
  /** All that it wrote. */
  output(): string;
  /** Ends it, and resolves when it is gone. */
  stop(): Promise<void>;
}

/** What is started, and where. */
export interface PinnedCommand {
  readonly taskset: string;
  readonly cores: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts a process on given cores. It does not outlive the bench. */
export function startPinned({ taskset, cores, command, environment = {} }: PinnedCommand): PinnedProcess {
  const child = spawn(taskset, ['-c', cores, ...command], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const pid = child.pid ?? 0;
  const onExit = () => child.kill('SIGTERM');
  process.once('exit', onExit);
  return {
    pids: () => [pid, ...childrenOf(pid)],
    output: outputOf(child),
    stop: async () => {
      process.removeListener('exit', onExit);
      await end(child);
    },
  };
}

/** Starts a process, and resolves when it listens on a loopback port. */
export async function startListening(port: number, command: PinnedCommand): Promise<PinnedProcess> {
  const started = startPinned(command);
  await until(() => accepts(port), { timeoutMs: 10_000 }).catch((cause: unknown) => {
    throw new Error(`Nothing listens on port ${port}:\n${started.output()}`, { cause });
  });
  return started;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter((text) => text !== '')
    .map(Number);
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await gone;
  clearTimeout(force);
}
