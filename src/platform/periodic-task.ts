import type { Random } from './random.ts';

/** How often a periodic task runs. */
export interface PeriodicTaskOptions {
  readonly random: Random;
  /** From the end of a run to the start of the next one. Milliseconds. */
  readonly pauseMs: number;
  /** The longest pause after runs that failed; `pauseMs` when missing. Milliseconds. */
  readonly longestPauseMs?: number;
}

/**
 * Runs a task again and again, never twice at a time: a pause after one run's end, the next begins. Pauses vary by a quarter, so that replicas do
 * not keep step; after a failed run they double up to a cap. Does not keep the process alive.
 */
export class PeriodicTask {
  readonly #task: () => Promise<boolean>;
  readonly #random: Random;
  readonly #pauseMs: number;
  readonly #longestPauseMs: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStarted = false;
  #isStopped = false;

  /** The task resolves with whether it succeeded, and never rejects. */
  constructor(
    task: () => Promise<boolean>,
    { random, pauseMs, longestPauseMs = pauseMs }: PeriodicTaskOptions,
  ) {
    this.#task = task;
    this.#random = random;
    this.#pauseMs = pauseMs;
    this.#longestPauseMs = longestPauseMs;
  }

  /** The first run comes after a pause. */
  start(): void {
    if (this.#isStarted || this.#isStopped) return;
    this.#isStarted = true;
    this.#schedule(this.#pauseMs);
  }

  /** The first run comes now. */
  startAtOnce(): void {
    if (this.#isStarted || this.#isStopped) return;
    this.#isStarted = true;
    this.#running = this.#run(this.#pauseMs);
  }

  /** Resolves when the run under way has ended; none begins after, even if `start` is called only then. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(pauseMs: number): void {
    if (this.#isStopped) return;
    // Shorter, never longer: the pause is a promise to users.
    const variedMs = pauseMs * (1 - (this.#random.bytes(1)[0] ?? 0) / 1024);
    this.#timer = setTimeout(() => {
      this.#running = this.#run(pauseMs);
    }, variedMs);
    this.#timer.unref();
  }

  async #run(pauseMs: number): Promise<void> {
    const isDone = await this.#task();
    this.#schedule(
      isDone ? this.#pauseMs : Math.min(pauseMs * 2, Math.max(this.#longestPauseMs, this.#pauseMs)),
    );
  }
}
