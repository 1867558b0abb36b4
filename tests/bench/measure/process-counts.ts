import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of processes since they started, all threads. Nanoseconds. */
export function cpuNs(pids: readonly number[]): number {
  return sum(pids.flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((task) => threadCpuNs(pid, task))));
}

/** Resident memory of processes together. Bytes. */
export function residentBytes(pids: readonly number[]): number {
  return sum(
    pids.map(
      (pid) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    ),
  );
}

/** The first number of schedstat is the time on a core; finer than the ticks of `stat`. */
function threadCpuNs(pid: number, task: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
  } catch {
    return 0; // a thread that ended in between
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
