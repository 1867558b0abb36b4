import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { endChild, hasEnded, outputOf } from './end-child.ts';
import { until } from './until.ts';

/** A program that listens on a port. */
export interface RunningProgram {
  readonly port: number;
  /** All that it wrote. */
  readonly output: () => string;
  stop(): Promise<void>;
}

/** How a program is started. */
export interface ProgramStart {
  readonly name: string;
  /** With its files; removed in the end. */
  readonly directory: string;
  readonly command: readonly string[];
  readonly port: number;
}

/** Resolves once the program responds on its port. */
export async function runProgram({ name, directory, command, port }: ProgramStart): Promise<RunningProgram> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
  });
  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  const output = outputOf(child);
  const stop = async (): Promise<void> => {
    // nginx ends its workers only if it can.
    if (!hasEnded(child)) child.kill('SIGTERM');
    await until(() => hasEnded(child), { timeoutMs: 5000 }).catch(() => endChild(child));
    process.removeListener('exit', onExit);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await until(() => hasEnded(child) || listens(port));
    if (hasEnded(child)) throw new Error(`${name} ended at once:\n${output()}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, output, stop };
}

async function listens(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  );
}
