import type { Clock } from '../../src/platform/clock.ts';

/** A clock that stands still until a test moves it. Both its times move together. */
export class ManualClock implements Clock {
  #nowMs: number;
  readonly #startMs: number;

  constructor(startMs: number = Date.UTC(2026, 0, 31, 10, 20, 30, 456)) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs;
  }

  advance(byMs: number): void {
    this.#nowMs += byMs;
  }
}
