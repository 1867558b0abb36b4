import { MAIN_CASE } from '../cases.ts';
import { CONNECTIONS, runLoad } from '../load/run-load.ts';
import type { CandidateName } from '../setup/candidate.ts';
import type { World } from '../setup/world.ts';
import { median, shuffled } from './statistics.ts';

/** Percentiles as a client sees them. Milliseconds. */
interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Latencies of one candidate in the main case. */
export interface CandidateLatencies {
  readonly candidate: CandidateName;
  /** One connection, one request after the other. */
  readonly oneConnection: Latency;
  /** As many connections as in the rounds, with random pauses that halve the candidate's own full throughput. */
  readonly halfLoad: Latency & { readonly requestsPerSecond: number };
}

/** Medians over some rounds. `fullLoad` has what each candidate did without pauses, in requests per second. */
export async function measureLatencies(
  world: World,
  fullLoad: ReadonlyMap<CandidateName, number>,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<readonly CandidateLatencies[]> {
  const seen = new Map<CandidateName, { one: Latency[]; half: CandidateLatencies['halfLoad'][] }>();
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, port } of shuffled(world.candidates)) {
      const of = seen.get(name) ?? { one: [], half: [] };
      seen.set(name, of);
      const load = { benchCase: MAIN_CASE, port, seconds };
      of.one.push(latencyOf(await runLoad(world, { ...load, connections: 1 })));
      const full = fullLoad.get(name) ?? 0;
      if (full === 0) continue;
      const pauseMs = Math.max(1, (CONNECTIONS / (full / 2)) * 1000);
      const result = await runLoad(world, { ...load, pauseMs });
      of.half.push({
        ...latencyOf(result),
        requestsPerSecond: (result.requests / result.durationUs) * 1e6,
      });
    }
  }
  return [...seen].map(([candidate, { one, half }]) => ({
    candidate,
    oneConnection: medianLatency(one),
    halfLoad: {
      ...medianLatency(half),
      requestsPerSecond: median(half.map(({ requestsPerSecond }) => requestsPerSecond)),
    },
  }));
}

function latencyOf({ p50Us, p99Us }: { readonly p50Us: number; readonly p99Us: number }): Latency {
  return { p50Ms: p50Us / 1000, p99Ms: p99Us / 1000 };
}

function medianLatency(latencies: readonly Latency[]): Latency {
  return {
    p50Ms: median(latencies.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(latencies.map(({ p99Ms }) => p99Ms)),
  };
}
