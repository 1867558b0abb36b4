import type { Clock } from './clock.ts';

/** The pause between two log lines about the same event. Milliseconds. */
const PAUSE_MS = 60_000;

/** Limits log lines about a repeated event: one at once, then at most one a minute. */
export class LogThrottle {
  readonly #clock: Clock;
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called for each event. If a line is due, returns the number of events since the last line; otherwise 0. */
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
