import type { LoadResult } from '../load/run-load.ts';
import { cpuNs } from '../measure/process-counts.ts';
import { distanceFromOne, median, type Spread, shuffled, spreadOf } from '../measure/statistics.ts';

/** Something that takes part in rounds: processes under one load. */
export interface Contestant<Name extends string = string> {
  readonly name: Name;
  pids(): readonly number[];
  readonly redisPids: readonly number[];
  run(seconds: number): Promise<LoadResult>;
}

/** What one round of one contestant gave. */
export interface Turn {
  /** CPU per request of its processes, and of Redis. Microseconds. */
  readonly cpuUs: number;
  readonly redisCpuUs: number;
  readonly requests: number;
  readonly p99Ms: number;
  /** Responses of 400 or more, and those that did not come. */
  readonly failed: number;
}

/** The rounds of each contestant, in the order of the rounds. */
export type Turns<Name extends string = string> = Readonly<Record<Name, readonly Turn[]>>;

/** All contestants take turns in random order, in each round each once, after a run that is not measured. */
export async function takeTurns<Name extends string>(
  contestants: readonly Contestant<Name>[],
  { rounds, seconds, warmUpSeconds }: Record<'rounds' | 'seconds' | 'warmUpSeconds', number>,
): Promise<Turns<Name>> {
  const turns = Object.fromEntries(contestants.map(({ name }) => [name, []])) as unknown as Record<
    Name,
    Turn[]
  >;
  for (const contestant of contestants) await contestant.run(warmUpSeconds);
  for (let round = 0; round < rounds; round += 1) {
    for (const one of shuffled(contestants)) {
      const before = [cpuNs(one.pids()), cpuNs(one.redisPids)] as const;
      const { requests, p99Us, limited, broken } = await one.run(seconds);
      const perRequest = (ns: number) => ns / 1000 / requests;
      turns[one.name].push({
        cpuUs: perRequest(cpuNs(one.pids()) - before[0]),
        redisCpuUs: perRequest(cpuNs(one.redisPids) - before[1]),
        ...{ requests, p99Ms: p99Us / 1000, failed: limited + broken },
      });
    }
  }
  return turns;
}

/** The ratio of two contestants' CPU per request, round by round: what slows the machine down for a while slows both. */
export function ratioOfTurns(turns: readonly Turn[], base: readonly Turn[]): Spread {
  const ratios = turns.map(({ cpuUs }, round) => cpuUs / (base[round]?.cpuUs ?? Number.NaN));
  // A round without a response has no CPU time a request.
  return spreadOf(ratios.filter((ratio) => Number.isFinite(ratio) && ratio > 0));
}

/** How far the A/A pair is apart: the largest distance from 1 of the quartiles of its ratio. */
export function spreadOfPair(again: readonly Turn[], base: readonly Turn[]): number {
  return distanceFromOne(ratioOfTurns(again, base));
}

/** Of all rounds. */
export function medianTurn(turns: readonly Turn[]): Turn {
  const counting = turns.filter(({ requests }) => requests > 0);
  const of = (number: keyof Turn) => median(counting.map((turn) => turn[number]));
  return {
    ...{ cpuUs: of('cpuUs'), redisCpuUs: of('redisCpuUs'), requests: of('requests'), p99Ms: of('p99Ms') },
    failed: turns.reduce((sum, { failed }) => sum + failed, 0),
  };
}
