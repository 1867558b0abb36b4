import { SeededRandom } from '../chaos/seeded-random.ts';
import { borrowing } from './policies/borrowing.ts';
import { fixedShares } from './policies/fixed-shares.ts';
import { gossip } from './policies/gossip.ts';
import { homePolicy } from './policies/home.ts';
import { Timeline } from './timeline.ts';
import { type Policy, type PolicyName, REGIONS, type Scenario, World } from './world.ts';

export const POLICIES: Readonly<Record<PolicyName, (world: World) => Policy>> = {
  home: homePolicy,
  fixed: fixedShares,
  borrowing,
  gossip,
};

/** What became of all requests of a run. */
export interface Outcome {
  readonly requests: number;
  /** Allowed beyond the limit, as a share of the limit: the mean of all windows, and the worst. */
  readonly overAdmitted: number;
  readonly worstOverAdmitted: number;
  /** Rejected although the regions together had room, as a share of what they could have allowed. */
  readonly wronglyRejected: number;
  /** What a decision took, of allowed requests. Milliseconds. */
  readonly meanMs: number;
  readonly p99Ms: number;
}

const WINDOWS = 12;
/** After the last window, so that every request is decided. Milliseconds. */
const AFTERWARDS_MS = 5000;

/** Plays a scenario. The same scenario, policy and seed always have the same outcome. */
export function simulate(scenario: Scenario, name: PolicyName, seed: number): Outcome {
  const timeline = new Timeline();
  const world = new World(scenario, timeline, new SeededRandom(seed));
  const policy = POLICIES[name](world);
  const counts: Counts = { allowed: [], rejected: [], latencies: [] };
  const request = (region: number): void => {
    const atMs = timeline.nowMs;
    policy.decide(region, (isAllowed, window) => {
      const of = isAllowed ? counts.allowed : counts.rejected;
      of[window] = (of[window] ?? 0) + 1;
      if (isAllowed) counts.latencies.push(timeline.nowMs - atMs);
    });
  };
  // A generator of its own: the requests are the same for each policy.
  startRequests(world, new SeededRandom(seed + 1), request);
  timeline.runUntil(WINDOWS * scenario.windowMs + AFTERWARDS_MS);
  return outcomeOf(scenario, counts);
}

function startRequests(world: World, random: SeededRandom, request: (region: number) => void): void {
  const { timeline, scenario } = world;
  const meanGapMs = scenario.windowMs / (scenario.limit * scenario.demand);
  const next = (): void => {
    if (timeline.nowMs >= WINDOWS * scenario.windowMs) return;
    request(regionOf(scenario, Math.floor(timeline.nowMs / scenario.windowMs), random.fraction()));
    timeline.after(-Math.log(1 - random.fraction()) * meanGapMs, next);
  };
  timeline.after(0, next);
}

function regionOf({ skew, movesAfter }: Scenario, window: number, fraction: number): number {
  const busiest = Math.floor(window / movesAfter) % REGIONS.length;
  if (fraction < skew) return busiest;
  return (busiest + (fraction < skew + (1 - skew) / 2 ? 1 : 2)) % REGIONS.length;
}

/** By window, but for the latencies. */
interface Counts {
  readonly allowed: number[];
  readonly rejected: number[];
  readonly latencies: number[];
}

function outcomeOf({ limit }: Scenario, { allowed, rejected, latencies }: Counts): Outcome {
  const windows = Array.from({ length: WINDOWS }, (_, window) => ({
    allowed: allowed[window] ?? 0,
    // Not those that are rejected because the limit is used up.
    wronglyRejected: Math.min(rejected[window] ?? 0, Math.max(0, limit - (allowed[window] ?? 0))),
  }));
  const over = windows.map((each) => Math.max(0, each.allowed - limit) / limit);
  const wrong = sum(windows.map((each) => each.wronglyRejected));
  latencies.sort((one, other) => one - other);
  return {
    requests: sum(allowed) + sum(rejected),
    overAdmitted: sum(over) / WINDOWS,
    worstOverAdmitted: Math.max(...over),
    wronglyRejected: wrong / Math.max(1, wrong + sum(allowed)),
    meanMs: sum(latencies) / Math.max(1, latencies.length),
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
  };
}

/** A window without requests has no count. */
function sum(values: readonly (number | undefined)[]): number {
  return values.reduce((total: number, value) => total + (value ?? 0), 0);
}
