import { readFileSync } from 'node:fs';

/** What Linux lets a process have at most (`fs.nr_open`). */
const ELSEWHERE = 1_048_576;

/**
 * How many files and sockets this process may have open at a time (`ulimit -n`; Node has raised the soft limit to the hard one).
 * Where the system does not tell in `/proc`, a number that limits nothing.
 */
export function openFileLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? ELSEWHERE : Number(limit);
  } catch {
    return ELSEWHERE;
  }
}
