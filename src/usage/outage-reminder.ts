import type { StoreUnavailable } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import { LogThrottle } from '../platform/log-throttle.ts';
import type { Logger } from '../platform/logger.ts';

/** An outage is over after this time without a failure. Milliseconds. */
const OVER_AFTER_MS = 60_000;

/** Logs that usage can't be moved: one line when a store becomes unavailable, one a minute while it stays so, and one at the end. */
export class OutageReminder {
  readonly #log: Logger;
  readonly #clock: Clock;
  /** By the monotonic clock, in milliseconds. */
  #outage:
    | { readonly sinceMs: number; readonly lastAtMs: number; readonly throttle: LogThrottle }
    | undefined;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  noteFailure({ store, reason }: StoreUnavailable): void {
    const nowMs = this.#clock.monotonicMs();
    const { sinceMs, throttle } = this.#outage ?? { sinceMs: nowMs, throttle: new LogThrottle(this.#clock) };
    this.#outage = { sinceMs, lastAtMs: nowMs, throttle };
    if (throttle.note() === 0) return;
    const facts = { store, reason, seconds: Math.round((nowMs - sinceMs) / 1000) };
    this.#log.warn(facts, 'usage could not be moved; it is kept and tried again');
  }

  /**
   * Notes a round in which no store was unavailable or busy. If the round moved nothing, it did not need the history: then the outage ends only
   * after a minute without a failure, and lasted until its last failure.
   */
  noteRound(hasMoved: boolean): void {
    if (this.#outage === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const { sinceMs, lastAtMs } = this.#outage;
    if (!hasMoved && nowMs - lastAtMs < OVER_AFTER_MS) return;
    const seconds = Math.round(((hasMoved ? nowMs : lastAtMs) - sinceMs) / 1000);
    this.#outage = undefined;
    this.#log.info({ seconds }, 'usage is moved again');
  }
}
