import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/** Counts events of processes while `run` runs, by name; NaN for one that the machine does not count. Counting costs them time: measure that apart. */
export async function countWithPerf(
  perf: string,
  { pids, events }: { readonly pids: readonly number[]; readonly events: readonly string[] },
  run: () => Promise<unknown>,
): Promise<ReadonlyMap<string, number>> {
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
  const lines = text.split('\n').map((line) => line.split(';'));
  // Where only the user's part may be counted, perf says so behind the name.
  const countOf = (event: string) =>
    Number(lines.find(([, , name]) => name?.replace(/:u$/, '') === event)?.[0]);
  return new Map(events.map((event) => [event, countOf(event)]));
}
