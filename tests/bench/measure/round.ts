import { setTimeout as wait } from 'node:timers/promises';
import type { BenchCase } from '../cases.ts';
import { CONNECTIONS, type LoadResult, runLoad } from '../load/run-load.ts';
import type { BenchOptions } from '../options.ts';
import type { Candidate, CandidateName } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';
import { cpuNs, residentBytes } from './process-counts.ts';
import type { RedisProbe } from './redis-counts.ts';

/** One run of a case's load against one candidate. */
export interface Round {
  readonly caseId: string;
  readonly round: number;
  readonly candidate: CandidateName;
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** CPU of the candidate's processes per request. Microseconds. */
  readonly cpuUs: number;
  /** CPU of Redis per request, background work of the candidate included. Microseconds. */
  readonly redisCpuUs: number;
  /** Script calls, and all commands, per request. */
  readonly redisCalls: number;
  readonly redisCommands: number;
  /** Connections that the backend accepted, per 10 000 requests. */
  readonly backendConnections: number;
  readonly residentBytes: number;
  /** From request to response as the clients saw it. Milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Why the round does not count; undefined = it does. */
  readonly fault?: string;
}

/** What a round is made of. */
export interface RoundPlan {
  readonly benchCase: BenchCase;
  readonly candidate: Candidate;
  readonly round: number;
  /** Another gateway asks about the requests, and nothing is forwarded; false by default. */
  readonly asks?: boolean;
}

/** Warms up, measures, and holds the result against what Redis and the backend counted. */
export async function runRound(
  world: World,
  probe: RedisProbe,
  { benchCase, candidate, round, asks = false }: RoundPlan,
  options: BenchOptions,
): Promise<Round> {
  const load = { benchCase, port: candidate.port, asks };
  if (options.warmUpSeconds > 0) await runLoad(world, { ...load, seconds: options.warmUpSeconds });
  await untilQuiet(world);
  const before = await snapshot(world, probe, candidate, benchCase);
  const result = await runLoad(world, { ...load, seconds: options.seconds });
  if (candidate.name.startsWith('tollgate')) await wait(options.settleMs);
  await untilQuiet(world);
  const after = await snapshot(world, probe, candidate, benchCase);
  const { requests } = result;
  const fault = faultOf(result, {
    seconds: options.seconds,
    isLimited: benchCase.isLimited,
    asks,
    allowed: after.allowed === undefined ? undefined : after.allowed - (before.allowed ?? 0),
    backendRequests: after.backendRequests - before.backendRequests,
  });
  return {
    caseId: benchCase.id,
    round,
    candidate: candidate.name,
    requests,
    requestsPerSecond: (requests / result.durationUs) * 1e6,
    cpuUs: (after.cpuNs - before.cpuNs) / 1000 / requests,
    redisCpuUs: (after.redisCpuNs - before.redisCpuNs) / 1000 / requests,
    redisCalls: (after.redisCalls - before.redisCalls) / requests,
    redisCommands: (after.redisCommands - before.redisCommands) / requests,
    backendConnections: ((after.backendConnections - before.backendConnections) / requests) * 10_000,
    residentBytes: after.residentBytes,
    p50Ms: result.p50Us / 1000,
    p99Ms: result.p99Us / 1000,
    p999Ms: result.p999Us / 1000,
    ...(fault !== undefined && { fault }),
  };
}

async function snapshot(world: World, probe: RedisProbe, candidate: Candidate, { keys }: BenchCase) {
  const backend = await world.backend.counts();
  const allowed = candidate.counts && (await probe.allowed(candidate.counts, world.keys[keys]));
  const redis = await probe.counts();
  return {
    backendConnections: backend.connections,
    backendRequests: backend.requests,
    allowed,
    redisCalls: redis.calls,
    redisCommands: redis.commands,
    redisCpuNs: cpuNs([world.redis.pid]),
    cpuNs: cpuNs(candidate.pids()),
    residentBytes: residentBytes(candidate.pids()),
  };
}

interface Counted {
  readonly seconds: number;
  readonly isLimited: boolean;
  readonly asks: boolean;
  /** Undefined where the candidate does not count in Redis. */
  readonly allowed: number | undefined;
  readonly backendRequests: number;
}

/**
 * wrk does not count what is in flight when it ends and closes its connections. Of those requests some are allowed and not forwarded
 * any more, others are forwarded and counted by the backend.
 */
function faultOf(
  { requests, durationUs, limited, broken }: LoadResult,
  { seconds, isLimited, asks, allowed, backendRequests }: Counted,
): string | undefined {
  if (requests === 0) return 'no request got a response';
  if (durationUs > (seconds + 1) * 1e6) return `the load took ${durationUs / 1e6} s`;
  if (broken > 0) return `${broken} connections or responds failed`;
  if (isLimited) {
    if (limited !== requests) return `${requests - limited} requests over the limit were not limited`;
    return (allowed ?? 0) + backendRequests === 0
      ? undefined
      : `${allowed} allowed, ${backendRequests} forwarded`;
  }
  if (limited > 0) return `${limited} responses of 400 or more`;
  const isForwarded = asks ? backendRequests === 0 : backendRequests >= requests;
  const isCounted =
    allowed === undefined ||
    (allowed >= Math.max(requests, backendRequests) && allowed <= requests + CONNECTIONS);
  return isForwarded && isCounted
    ? undefined
    : `${requests} responses, ${allowed} allowed, ${backendRequests} forwarded`;
}

/** Resolves when the backend has got nothing for a while: what was in flight is over. */
async function untilQuiet({ backend }: World): Promise<void> {
  let seen = -1;
  for (;;) {
    const { requests } = await backend.counts();
    if (requests === seen) return;
    seen = requests;
    await wait(100);
  }
}
