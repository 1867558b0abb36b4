import { RoundRobinQueue } from './round-robin-queue.ts';

/** How much work may run and wait. */
export interface ConcurrencyLimitOptions {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  /** As much as `maxWaiting` by default. */
  readonly maxWaitingPerGroup?: number;
  /** Makes the error of work that may not wait. */
  readonly overloaded: () => Error;
}

/**
 * Bounds how much asynchronous work runs and waits, so that a flood of it can take neither all of a store's connections nor all of the
 * process's memory. Waiting work of different groups takes turns; that of one group runs in its order.
 */
export class ConcurrencyLimit {
  readonly #options: ConcurrencyLimitOptions;
  /** What begins the work that waits. */
  readonly #waiting = new RoundRobinQueue<() => void>();
  #running = 0;

  constructor(options: ConcurrencyLimitOptions) {
    this.#options = options;
  }

  /** What the work results in, which begins now or later. Rejects with `overloaded`, and it does not begin, if too much waits. */
  async run<Result>(work: () => Promise<Result>, group = ''): Promise<Result> {
    const { maxRunning, maxWaiting, maxWaitingPerGroup = maxWaiting, overloaded } = this.#options;
    if (this.#running < maxRunning) this.#running += 1;
    else if (this.#waiting.size >= maxWaiting || this.#waiting.sizeOf(group) >= maxWaitingPerGroup)
      throw overloaded();
    else await new Promise<void>((begin) => this.#waiting.push(group, begin));
    try {
      return await work();
    } finally {
      const beginNext = this.#waiting.shift();
      if (beginNext === undefined) this.#running -= 1;
      else beginNext();
    }
  }
}
