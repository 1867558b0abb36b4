import { type Clock, systemClock } from '../../platform/clock.ts';

/** The machine's clock, set back: it goes as fast as the machine's and can be put forward until it shows the same. */
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

  /** Never beyond the machine's clock. */
  putForward(ms: number): void {
    this.#behindMs = Math.max(0, this.#behindMs - ms);
  }
}
