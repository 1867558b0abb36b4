import type { Clock } from '../platform/clock.ts';

/**
 * How long those who are asked have said nothing. Silence begins when a first answer is overdue, not when it was asked for: after the
 * whole machine stood still, everybody's may be.
 */
export class Silence<Asked extends object> {
  readonly #mostMs: number;
  readonly #clock: Clock;
  readonly #sinceMs = new WeakMap<Asked, number>();

  /** Silence of `mostMs` milliseconds is too long. */
  constructor(mostMs: number, clock: Clock) {
    this.#mostMs = mostMs;
    this.#clock = clock;
  }

  /** An answer is overdue. Returns whether none has come for too long. Says so once, and then begins anew. */
  overdue(asked: Asked): boolean {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#sinceMs.get(asked);
    if (sinceMs === undefined) this.#sinceMs.set(asked, nowMs);
    if (sinceMs === undefined || nowMs - sinceMs < this.#mostMs) return false;
    this.#sinceMs.delete(asked);
    return true;
  }

  /** An answer came, late or not. */
  broken(asked: Asked): void {
    this.#sinceMs.delete(asked);
  }
}
