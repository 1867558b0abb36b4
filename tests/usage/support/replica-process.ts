import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ReplicaTask } from './replica.ts';

const SCRIPT = fileURLToPath(new URL('./replica.ts', import.meta.url));

/** A replica in a separate process. */
export interface ReplicaProcess {
  /** Requests that it has said it recorded, and of how many Redis had confirmed the write then, oldest first. */
  readonly reports: readonly (readonly [recorded: number, confirmed: number])[];
  kill(signal: NodeJS.Signals): void;
  /** Its exit code, or the signal that ended it. Rejects with what it wrote to standard error when it failed. */
  readonly ended: Promise<number | NodeJS.Signals>;
}

export function startReplica(task: ReplicaTask): ReplicaProcess {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', SCRIPT, JSON.stringify(task)],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const reports: (readonly [number, number])[] = [];
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [recorded = 0, confirmed = 0] = line.split(' ').map(Number);
      reports.push([recorded, confirmed]);
    }
  });
  return { reports, kill: (signal) => void child.kill(signal), ended: ended(child) };
}

async function ended(child: ChildProcess): Promise<number | NodeJS.Signals> {
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  await once(child, 'close');
  if (child.exitCode !== null && child.exitCode !== 0) {
    throw new Error(`a replica ended with code ${child.exitCode}: ${complaint}`);
  }
  return child.signalCode ?? child.exitCode ?? 0;
}
