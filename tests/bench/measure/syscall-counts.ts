import { countWithPerf } from './perf-counts.ts';

/** The system calls of which a request is made; `other` is what remains of all of them. */
export const SYSCALLS = [
  'read',
  'recvfrom',
  'write',
  'writev',
  'sendto',
  'epoll_pwait',
  'epoll_wait',
  'epoll_ctl',
  'futex',
];

/** Calls by name, `other` among them, of processes while `run` runs. Counting costs them time: measure that apart. */
export async function countSyscalls(
  perf: string,
  pids: readonly number[],
  run: () => Promise<unknown>,
): Promise<ReadonlyMap<string, number>> {
  const events = ['raw_syscalls:sys_enter', ...SYSCALLS.map((name) => `syscalls:sys_enter_${name}`)];
  const [all = 0, ...named] = [...(await countWithPerf(perf, { pids, events }, run)).values()];
  const other = all - named.reduce((sum, count) => sum + count, 0);
  return new Map([...SYSCALLS.map((name, index) => [name, named[index] ?? 0] as const), ['other', other]]);
}
