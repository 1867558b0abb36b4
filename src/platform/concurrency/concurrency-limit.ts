import { RoundRobinQueue } from './round-robin-queue.ts';

/** Asynchronous work that calls `done` exactly once, when it has ended. */
export type Task = (done: () => void) => void;

/** How many tasks may run and wait. */
export interface ConcurrencyLimitOptions {
  readonly maxRunning: number;
  /** 0 by default. */
  readonly maxWaiting?: number;
  /** As many as `maxWaiting` by default. */
  readonly maxWaitingPerGroup?: number;
}

/**
 * Runs and keeps waiting at most some tasks, so that a flood of tasks can take neither all of a store's connections nor all of the process's
 * memory. Waiting tasks of different groups take turns; those of one group run in their order.
 */
export class ConcurrencyLimit {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #maxWaitingPerGroup: number;
  readonly #waiting = new RoundRobinQueue<Task>();
  #running = 0;

  constructor({ maxRunning, maxWaiting = 0, maxWaitingPerGroup = maxWaiting }: ConcurrencyLimitOptions) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
    this.#maxWaitingPerGroup = maxWaitingPerGroup;
  }

  /** Starts the task, now or later. Returns false, and does not start it, if too many wait. */
  run(task: Task, group = ''): boolean {
    if (this.#running < this.#maxRunning) {
      this.#start(task);
      return true;
    }
    if (this.#waiting.size >= this.#maxWaiting) return false;
    if (this.#waiting.sizeOf(group) >= this.#maxWaitingPerGroup) return false;
    this.#waiting.push(group, task);
    return true;
  }

  /** What the work results in, which begins now or later. Undefined, and it does not begin, if too many wait. */
  resultOf<Result>(work: () => Promise<Result>, group?: string): Promise<Result> | undefined {
    const result = Promise.withResolvers<Result>();
    const isTaken = this.run((done) => {
      work().then(result.resolve, result.reject).finally(done);
    }, group);
    return isTaken ? result.promise : undefined;
  }

  #start(task: Task): void {
    this.#running += 1;
    task(() => {
      this.#running -= 1;
      const next = this.#waiting.shift();
      if (next !== undefined) this.#start(next);
    });
  }
}
