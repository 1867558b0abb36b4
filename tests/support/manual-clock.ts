import type { Clock } from '../../src/platform/clock.ts';

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #startMs: number;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
    this.#startMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  /** As if the wall clock were set: the monotonic clock goes on as before. */
  setWallClockAhead(ms: number): void {
    this.#nowMs += ms;
    this.#startMs += ms;
  }
}
