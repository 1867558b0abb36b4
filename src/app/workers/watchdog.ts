import type { Clock } from '../../platform/clock.ts';

/** How long responses may be overdue. Milliseconds. */
const TIMEOUT_MS = 30_000;

/**
 * Finds workers that have not responded for too long. The time starts when the first response is overdue, not when it was requested:
 * after a pause of the whole machine every response may be overdue.
 */
export class Watchdog<Watched extends object> {
  readonly #clock: Clock;
  readonly #overdueSinceMs = new WeakMap<Watched, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called when a response is overdue. Returns whether none has come for `TIMEOUT_MS`; if so, the time starts again. */
  isExpired(watched: Watched): boolean {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#overdueSinceMs.get(watched);
    if (sinceMs === undefined) this.#overdueSinceMs.set(watched, nowMs);
    if (sinceMs === undefined || nowMs - sinceMs < TIMEOUT_MS) return false;
    this.#overdueSinceMs.delete(watched);
    return true;
  }

  /** Called when a response comes, late or not. */
  reset(watched: Watched): void {
    this.#overdueSinceMs.delete(watched);
  }
}
