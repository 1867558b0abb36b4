/** Asynchronous work that calls `done` exactly once, when it has ended. */
export type Task = (done: () => void) => void;

/**
 * Runs at most `maxRunning` tasks at a time and lets at most `maxWaiting` wait, first in, first out, so that a flood of tasks can take
 * neither all of a store's connections nor all of the process's memory.
 */
export class ConcurrencyLimit {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #waiting: Task[] = [];
  #running = 0;

  constructor(maxRunning: number, maxWaiting: number) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  /** Starts the task, now or later. Returns false, and does not start it, if too many wait. */
  run(task: Task): boolean {
    if (this.#running < this.#maxRunning) {
      this.#start(task);
      return true;
    }
    if (this.#waiting.length >= this.#maxWaiting) return false;
    this.#waiting.push(task);
    return true;
  }

  #start(task: Task): void {
    this.#running += 1;
    task(() => {
      this.#running -= 1;
      const next = this.#waiting.shift();
      if (next !== undefined) {
        this.#start(next);
      }
    });
  }
}
