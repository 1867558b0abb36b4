import { MAIN_CASE } from '../cases.ts';
import type { DecisionsRound } from '../measure/decisions.ts';
import type { Garbage } from '../measure/garbage.ts';
import type { CandidateLatencies } from '../measure/latencies.ts';
import type { MemoryCourse } from '../measure/memory.ts';
import type { Round } from '../measure/round.ts';
import type { CaseResult } from '../measure/run-cases.ts';
import type { StartUp } from '../measure/start-up.ts';
import { distanceFromOne, median, type Spread, spreadOf } from '../measure/statistics.ts';
import type { WorkersRound } from '../measure/workers.ts';
import type { BenchOptions } from '../options.ts';
import { CANDIDATES, type CandidateName } from '../setup/candidate.ts';
import type { Machine } from './machine.ts';

/** All that a run of the bench found out; what the JSON file holds. */
export interface BenchResult extends Measured {
  readonly measuredAt: string;
  readonly machine: Machine;
  readonly options: BenchOptions;
  readonly tookSeconds: number;
}

/** What was measured. Undefined is what was not asked for, or not reached. */
export interface Measured {
  readonly cases: readonly CaseResult[];
  readonly workers: readonly WorkersRound[] | undefined;
  readonly decisions: readonly DecisionsRound[] | undefined;
  readonly latencies: readonly CandidateLatencies[];
  readonly garbage: Garbage | undefined;
  /** Of the checkout that `--against` names. */
  readonly garbageBefore: Garbage | undefined;
  readonly memory: MemoryCourse | undefined;
  readonly startUp: StartUp | undefined;
}

/** A number of a round that the table shows. */
export type RoundNumber = Exclude<
  { [Name in keyof Round]: Round[Name] extends number ? Name : never }[keyof Round],
  undefined | 'round'
>;

/** Median over a candidate's rounds that count; NaN when there are none. */
export function medianOf({ rounds }: CaseResult, candidate: CandidateName, number: RoundNumber): number {
  return median(
    rounds
      .filter((round) => round.candidate === candidate && round.fault === undefined)
      .map((round) => round[number]),
  );
}

/** The ratio of two candidates' numbers, CPU per request by default, round by round, so that what slows the machine down for a while slows both. */
export function ratioOf(
  { rounds }: CaseResult,
  [candidate, yardstick]: readonly [CandidateName, CandidateName],
  number: RoundNumber = 'cpuUs',
): (Spread & { readonly rounds: number }) | undefined {
  const counting = rounds.filter(({ fault }) => fault === undefined);
  const ratios = counting
    .filter((round) => round.candidate === candidate)
    .flatMap((round) => {
      const other = counting.find((one) => one.candidate === yardstick && one.round === round.round);
      return other === undefined ? [] : [round[number] / other[number]];
    });
  return ratios.length === 0 ? undefined : { ...spreadOf(ratios), rounds: ratios.length };
}

/**
 * How far the A/A pair is apart: the largest distance from 1 of its quartiles. Undefined without a pair. An effect smaller than twice
 * this is not resolved.
 */
export function noiseOf(result: CaseResult): number | undefined {
  const ratio = ratioOf(result, ['tollgate-again', 'tollgate']);
  return ratio && distanceFromOne(ratio);
}

/** Requests per second of each candidate in the main case, as far as it was measured. */
export function fullLoadOf(cases: readonly CaseResult[]): ReadonlyMap<CandidateName, number> {
  const main = cases.find(({ benchCase }) => benchCase.id === MAIN_CASE.id);
  return new Map(
    main === undefined
      ? []
      : CANDIDATES.map((name) => [name, medianOf(main, name, 'requestsPerSecond') || 0] as const),
  );
}
