import { type Stops, stopAll } from '../../support/stops.ts';
import { type BenchCase, CASES, MAIN_CASE } from '../cases.ts';
import type { BenchOptions } from '../options.ts';
import { startAuthRequest } from '../setup/auth-request.ts';
import type { Candidate } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';
import { RedisProbe } from './redis-counts.ts';
import { type Round, runRound } from './round.ts';
import { warmUp } from './run-cases.ts';
import { shuffled } from './statistics.ts';

/** How a decision reaches a gateway: `proxied` and `asked` are the same replica. */
export const WAYS = ['proxied', 'asked', 'auth-request', 'nginx-lua'] as const;
export type Way = (typeof WAYS)[number];

/** One run of a case's load on one of the ways. */
export interface DecisionsRound extends Round {
  readonly way: Way;
}

/** The cases that the budget of decisions is about: their CPU, and their latency. */
export const DECISION_CASES: readonly BenchCase[] = CASES.filter(
  ({ id }) => id === MAIN_CASE.id || id === 'one-connection',
);

type Ways = readonly { readonly way: Way; readonly candidate: Candidate; readonly asks: boolean }[];

/**
 * A request that Tollgate proxies beside one that another gateway asks about, and nginx that asks by `auth_request` beside nginx with Lua
 * and Redis. They take turns in random order.
 */
export async function measureDecisions(
  world: World,
  options: BenchOptions,
  say: (text: string) => void,
): Promise<readonly DecisionsRound[]> {
  const lua = world.candidates.find(({ name }) => name === 'nginx-lua');
  if (lua === undefined) throw new Error('there is no nginx with Lua');
  const replica = await world.startReplica({ decides: true });
  const probe = new RedisProbe(world.redis.port);
  const stops: Stops = [replica.stop];
  try {
    const asking = await startAuthRequest(world, replica);
    stops.push(asking.stop);
    const ways: Ways = [
      { way: 'proxied', candidate: replica, asks: false },
      { way: 'asked', candidate: { ...replica, port: replica.authorizePort ?? 0 }, asks: true },
      { way: 'auth-request', candidate: asking, asks: false },
      { way: 'nginx-lua', candidate: lua, asks: false },
    ];
    const rounds: DecisionsRound[] = [];
    for (const { candidate, asks } of ways) await warmUp(world, MAIN_CASE, candidate.port, asks);
    for (let round = 0; round < options.decisionRounds; round += 1) {
      for (const benchCase of DECISION_CASES) {
        for (const { way, ...plan } of shuffled(ways)) {
          const result = await runRound(world, probe, { ...plan, benchCase, round }, options);
          if (result.fault !== undefined) say(`void: ${benchCase.id}, ${way}: ${result.fault}`);
          rounds.push({ ...result, way });
        }
      }
    }
    return rounds;
  } finally {
    probe.close();
    await stopAll(stops);
  }
}
