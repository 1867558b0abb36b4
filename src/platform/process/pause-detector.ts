import type { Clock } from '../clock.ts';

/** The interval at which the clock is checked while deadlines run. Milliseconds. */
const LOOK_EVERY_MS = 25;
/** The longest time between two checks that a busy machine explains. Milliseconds. */
const LONGEST_TURN_MS = 2 * LOOK_EVERY_MS;

/**
 * Detects that this process did not run: its host was suspended, its CPU quota was used up, or a turn of its event loop took too long. Code
 * that applies deadlines to others subtracts this time, because they are not to blame for it.
 */
export class PauseDetector {
  readonly #clock: Clock;
  readonly #isNeeded: () => boolean;
  readonly #onPause: (pausedMs: number) => void;
  #timer: NodeJS.Timeout | undefined = undefined;
  #lookedAtMs = 0;

  /** `onPause` gets the milliseconds in which the process did not run. The clock is checked as long as `isNeeded` returns true. */
  constructor(clock: Clock, isNeeded: () => boolean, onPause: (pausedMs: number) => void) {
    this.#clock = clock;
    this.#isNeeded = isNeeded;
    this.#onPause = onPause;
  }

  /** Starts checking the clock. Nearly free if it is already checked. `nowMs` is by the monotonic clock. */
  watch(nowMs: number): void {
    if (this.#timer !== undefined) return;
    this.#lookedAtMs = nowMs;
    this.#timer = setInterval(() => this.#lookAgain(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  /** Called before a deadline is applied: a pause may have ended before the timer could run. */
  look(): void {
    if (this.#timer === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const turnMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    if (turnMs > LONGEST_TURN_MS) this.#onPause(turnMs - LOOK_EVERY_MS);
  }

  #lookAgain(): void {
    this.look();
    if (this.#isNeeded()) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
