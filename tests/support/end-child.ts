import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** All that a process has written to its piped standard output and error so far. */
export function outputOf(child: ChildProcess): () => string {
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      written += chunk;
    });
  }
  return () => written;
}

/** Whether a process has ended, by itself or by a signal. */
export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Kills a process, if it runs, and resolves when it is gone. */
export async function endChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || hasEnded(child)) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
