import { type BenchCase, MAIN_CASE } from '../cases.ts';
import { runLoad } from '../load/run-load.ts';
import type { BenchOptions } from '../options.ts';
import { type CandidateName, MAIN_CASE_ONLY } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';
import { countEvents, type EventCounts } from './event-counts.ts';
import { RedisProbe } from './redis-counts.ts';
import { type Round, runRound } from './round.ts';
import { shuffled } from './statistics.ts';
import { useEveryKey } from './use-every-key.ts';

/** All that was measured of one case. */
export interface CaseResult {
  readonly benchCase: BenchCase;
  readonly rounds: readonly Round[];
  readonly events: Readonly<Partial<Record<CandidateName, EventCounts>>>;
}

/** So many requests until the code that is run often is compiled for speed. */
const WARM_REQUESTS = 20_000;
const LONGEST_WARM_UP_SECONDS = 6;

/** Makes a gateway warm for a case: with every key known to it, where there are so many that the load may leave some out. */
export async function warmUp(world: World, benchCase: BenchCase, port: number, asks = false): Promise<void> {
  if (benchCase.keys === 'ten_thousand') await useEveryKey(world, benchCase, port);
  let done = 0;
  for (let second = 0; second < LONGEST_WARM_UP_SECONDS && done < WARM_REQUESTS; second += 1) {
    done += (await runLoad(world, { benchCase, port, asks, seconds: 1 })).requests;
  }
}

/** Runs a case: first the counts, which warm everything up as well, then the rounds, each with all candidates in random order. */
export async function runCase(
  world: World,
  benchCase: BenchCase,
  options: BenchOptions,
  say: (text: string) => void,
): Promise<CaseResult> {
  const isMain = benchCase.id === MAIN_CASE.id;
  // The A/A pair tells how much noise there is. Where time is short that is measured in the main case only.
  const takesPart = ({ name }: { readonly name: CandidateName }) =>
    isMain || !(MAIN_CASE_ONLY.includes(name) || (options.isQuick && name === 'tollgate-again'));
  const candidates = () => shuffled(world.candidates).filter(takesPart);
  if (isMain || !options.isQuick) {
    for (const { port } of candidates()) await warmUp(world, benchCase, port);
  }
  const events: Partial<Record<CandidateName, EventCounts>> = {};
  for (const candidate of candidates()) {
    events[candidate.name] = await countEvents(world, candidate, benchCase, options);
  }
  const probe = new RedisProbe(world.redis.port);
  const rounds: Round[] = [];
  try {
    for (let round = 0; round < (isMain ? 2 : 1) * options.rounds; round += 1) {
      for (const candidate of candidates()) {
        const result = await runRound(world, probe, { benchCase, candidate, round }, options);
        if (result.fault !== undefined) {
          say(`void: ${benchCase.id}, ${candidate.name}: ${result.fault}`);
          await candidate.restart?.();
        }
        rounds.push(result);
      }
    }
  } finally {
    probe.close();
  }
  return { benchCase, rounds, events };
}
