import { type Clock, systemClock } from '../../platform/clock.ts';

/** A clock behind the machine's. It runs at the same speed, and can be put forward until it shows the machine's time. */
export class DemoClock implements Clock {
  #behindMs: number;

  constructor(behindMs: number) {
    this.#behindMs = behindMs;
  }

  nowMs(): number {
    return systemClock.nowMs() - this.#behindMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  /** Never goes beyond the machine's clock. */
  putForward(ms: number): void {
    this.#behindMs = Math.max(0, this.#behindMs - ms);
  }
}
