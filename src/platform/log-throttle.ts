import type { Clock } from './clock.ts';

/** The pause between two lines about the same. Milliseconds. */
const PAUSE_MS = 60_000;

/** Bounds the lines about what happens again and again: one at once, then one a minute at most. */
export class LogThrottle {
  readonly #clock: Clock;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It happened: how often since the last line where another one is due, otherwise 0. */
  note(): number {
    this.#count += 1;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#loggedAtMs < PAUSE_MS) return 0;
    const count = this.#count;
    this.#loggedAtMs = nowMs;
    this.#count = 0;
    return count;
  }
}
