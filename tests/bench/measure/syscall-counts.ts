import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

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
  const counting = spawn(perf, ['stat', '-x', ';', '-e', events.join(','), '-p', pids.join(',')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  counting.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await wait(200); // until it is attached
  await run();
  counting.kill('SIGINT');
  await once(counting, 'close');
  const counts = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [count, , event] = line.split(';');
    if (event !== undefined) counts.set(event.replace(/^(syscalls:sys_enter_)/, ''), Number(count));
  }
  const all = counts.get('raw_syscalls:sys_enter') ?? 0;
  counts.delete('raw_syscalls:sys_enter');
  counts.set('other', all - counts.values().reduce((sum, count) => sum + count, 0));
  return counts;
}
