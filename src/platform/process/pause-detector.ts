import type { Clock } from '../clock.ts';

/** Between two looks at the clock while something is waited for. Milliseconds. */
const LOOK_EVERY_MS = 25;
/** From one look to the next, on a machine that is merely busy. Milliseconds. */
const LONGEST_TURN_MS = 2 * LOOK_EVERY_MS;

/**
 * Finds out that this process did not run: its host stood still, its quota of CPU time was used up, or a turn of its event loop took too
 * long. Code that measures others by a deadline subtracts that time, because it says nothing about them.
 */
export class PauseDetector {
  readonly #clock: Clock;
  readonly #isNeeded: () => boolean;
  readonly #onPause: (pausedMs: number) => void;
  #timer: NodeJS.Timeout | undefined = undefined;
  #lookedAtMs = 0;

  /** `onPause` gets the milliseconds in which the process did not run. It looks for as long as `isNeeded` says so. */
  constructor(clock: Clock, isNeeded: () => boolean, onPause: (pausedMs: number) => void) {
    this.#clock = clock;
    this.#isNeeded = isNeeded;
    this.#onPause = onPause;
  }

  /** To be called when it is needed from now on. Nearly free while it looks already. `nowMs` is by the monotonic clock. */
  watch(nowMs: number): void {
    if (this.#timer !== undefined) return;
    this.#lookedAtMs = nowMs;
    this.#timer = setInterval(() => this.#lookAgain(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  /** To be called before something is held to have been too late: the pause may be over before the timer could run. */
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
