import { readFileSync } from 'node:fs';

/** The most open files that Linux allows a process by default (`fs.nr_open`). */
const ELSEWHERE = 1_048_576;

/**
 * The most files and sockets that this process may have open (`ulimit -n`; Node has raised the soft limit to the hard one). If the system
 * does not show it in `/proc`, a number so high that it limits nothing.
 */
export function openFileLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? ELSEWHERE : Number(limit);
  } catch {
    return ELSEWHERE;
  }
}
