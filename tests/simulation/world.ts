import type { SeededRandom } from '../chaos/seeded-random.ts';
import type { Timeline } from './timeline.ts';

/** What is simulated: one key that is used in three regions at once, under one limit. */
export interface Scenario {
  /** Requests that all regions together may allow in a window. */
  readonly limit: number;
  readonly windowMs: number;
  /** Requests in a window, as a share of the limit. */
  readonly demand: number;
  /** The share of the requests that one region gets; the other two get the same of the rest. */
  readonly skew: number;
  /** After how many windows another region is the one with most requests. */
  readonly movesAfter: number;
  /** The region that is cut off from the others, and when. Milliseconds. */
  readonly cut?: { readonly region: number; readonly fromMs: number; readonly untilMs: number };
}

export const REGIONS = ['Virginia', 'Ireland', 'Singapore'] as const;

/** From one region to another and back. Milliseconds, of the order that cloud providers state between these places. */
const ROUND_TRIP_MS: readonly (readonly number[])[] = [
  [1, 70, 220],
  [70, 1, 170],
  [220, 170, 1],
];
/** By which the clock of each region is ahead of the true time. Milliseconds. */
const CLOCK_AHEAD_MS = [0, 4, -6] as const;
/** How much longer than usual a message takes on average, as a share. */
const JITTER = 0.1;

/** The places and the network between them. */
export class World {
  readonly timeline: Timeline;
  readonly scenario: Scenario;
  readonly #random: SeededRandom;

  constructor(scenario: Scenario, timeline: Timeline, random: SeededRandom) {
    this.scenario = scenario;
    this.timeline = timeline;
    this.#random = random;
  }

  /** The number of the window by the clock of a region. */
  windowOf(region: number): number {
    const localMs = this.timeline.nowMs + (CLOCK_AHEAD_MS[region] ?? 0);
    return Math.max(0, Math.floor(localMs / this.scenario.windowMs));
  }

  /** Lets something happen in another region when a message has come there. A message from or to a region that is cut off is lost. */
  send(from: number, to: number, arrive: () => void): void {
    if (this.#isLost(from, to)) return;
    const usualMs = (ROUND_TRIP_MS[from]?.[to] ?? 0) / 2;
    const delayMs = usualMs * (1 - JITTER * Math.log(1 - this.#random.fraction()));
    this.timeline.after(delayMs, arrive);
  }

  #isLost(from: number, to: number): boolean {
    const { cut } = this.scenario;
    if (cut === undefined || from === to || (from !== cut.region && to !== cut.region)) return false;
    return this.timeline.nowMs >= cut.fromMs && this.timeline.nowMs < cut.untilMs;
  }
}

/** Is called once, when a request may go on or is rejected, with the window that it was counted or rejected in. */
export type Decided = (isAllowed: boolean, window: number) => void;

/** How regions share a limit. */
export interface Policy {
  decide(region: number, decided: Decided): void;
}

export type PolicyName = 'home' | 'fixed' | 'borrowing' | 'gossip';

/** Of one limit between all regions. */
export function shareOf(limit: number, region: number): number {
  const whole = Math.floor(limit / REGIONS.length);
  return whole + (region < limit % REGIONS.length ? 1 : 0);
}
