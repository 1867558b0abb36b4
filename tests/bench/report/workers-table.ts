import { median, type Spread, spreadOf } from '../measure/statistics.ts';
import { WORKER_COUNTS, type WorkerCount, type WorkersRound } from '../measure/workers.ts';
import type { BenchResult } from './bench-result.ts';
import { decimal, factor, table } from './table.ts';

/** Two workers against one, with what the figures can't tell; undefined when it was not measured. */
export function workersTable({ workers: rounds, machine }: BenchResult): string | undefined {
  if (rounds === undefined) return undefined;
  const rows = WORKER_COUNTS.map((workers) => {
    const own = countingRounds(rounds, workers);
    return [
      String(workers),
      decimal(median(own.map(({ requestsPerSecond }) => requestsPerSecond)), 0),
      decimal(median(own.map(({ cpuUs }) => cpuUs))),
      decimal(median(own.map(coresUsed)), 2),
      residentMegabytes(rounds, workers),
      String(rounds.filter((round) => round.workers === workers && round.fault !== undefined).length),
    ];
  });
  const heads = ['`WORKERS`', 'req/s', 'CPU µs', `cores used, of ${machine.cores}`, 'RSS MB', 'void'];
  const cpu = ratioOfTwoToOne(rounds, ({ cpuUs }) => cpuUs);
  return `${table(heads, rows)}

100 keys, allowed, nothing pinned. Two workers against one, round by round: requests per second × ${factor(throughputOfTwoToOne(rounds))}, CPU per request × ${factor(cpu)}.
wrk, the backend and Redis run on the same ${machine.cores} cores, so the first factor is what the gateway gets of them; with as many cores for itself as workers it could be ${decimal(2 / cpu.median, 2)}, as far as CPU decides.`;
}

/** Of all processes of the gateway. */
export function residentMegabytes(rounds: readonly WorkersRound[], workers: WorkerCount): string {
  const bytes = countingRounds(rounds, workers).map(({ residentBytes }) => residentBytes);
  return decimal(median(bytes) / 2 ** 20, 0);
}

/** Requests per second of two workers, as a multiple of those of one. */
export function throughputOfTwoToOne(rounds: readonly WorkersRound[]): Spread {
  return ratioOfTwoToOne(rounds, ({ requestsPerSecond }) => requestsPerSecond);
}

/** Of the CPU of the machine, what the gateway's processes had on average. In cores. */
function coresUsed({ requestsPerSecond, cpuUs }: WorkersRound): number {
  return (requestsPerSecond * cpuUs) / 1e6;
}

function countingRounds(rounds: readonly WorkersRound[], workers: WorkerCount): readonly WorkersRound[] {
  return rounds.filter((round) => round.workers === workers && round.fault === undefined);
}

function ratioOfTwoToOne(rounds: readonly WorkersRound[], number: (round: WorkersRound) => number): Spread {
  return spreadOf(
    countingRounds(rounds, 2).flatMap((two) => {
      const one = countingRounds(rounds, 1).find(({ round }) => round === two.round);
      return one === undefined ? [] : [number(two) / number(one)];
    }),
  );
}
