import { TollgateError } from '../../errors.ts';

/** A look-up: calls `done` exactly once when it has ended. */
export type LookUp = (done: () => void) => void;

/**
 * Lets at most `maxRunning` look-ups run together and at most `maxWaiting` wait for their turn, first come first served, so that
 * a flood of them can take neither all of the store's connections nor all of our memory.
 */
export class ConcurrencyLimit {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: LookUp[] = [];
  #running = 0;

  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  /** Starts the look-up, now or later. Undefined when it was taken; the error to respond with when too many wait. */
  enter(lookUp: LookUp): TollgateError | undefined {
    if (this.#running < this.#maxRunning) {
      this.#start(lookUp);
      return undefined;
    }
    if (this.#waiting.length >= this.#maxWaiting) {
      return new TollgateError(
        'overloaded',
        'Too many requests wait for a key to be looked up. Try again shortly.',
      );
    }
    this.#waiting.push(lookUp);
    return undefined;
  }

  #start(lookUp: LookUp): void {
    this.#running += 1;
    lookUp(() => {
      this.#running -= 1;
      const next = this.#waiting.shift();
      if (next !== undefined) {
        this.#start(next);
      }
    });
  }
}
