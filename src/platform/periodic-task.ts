import type { Logger } from './logger.ts';
import type { Random } from './random.ts';

/** How often a periodic task runs. */
export interface PeriodicTaskOptions {
  readonly random: Random;
  /** The pause between the end of a run and the start of the next one. Milliseconds. */
  readonly pauseMs: number;
  /** The longest pause after failed runs; missing: `pauseMs`. Milliseconds. */
  readonly longestPauseMs?: number;
}

/**
 * Resolves with whether it succeeded, and never rejects. Work that may take longer than a stop should wait ends early once `goesOn` returns
 * false.
 */
type PeriodicWork = (goesOn: () => boolean) => Promise<boolean>;

/**
 * Runs a task repeatedly, with a pause after each run, so that runs never overlap. Pauses are shortened at random by up to a quarter, so
 * that replicas do not run in step. After a failed run they double, up to a maximum. Does not keep the process alive.
 */
export class PeriodicTask {
  readonly #task: PeriodicWork;
  readonly #random: Random;
  readonly #pauseMs: number;
  readonly #longestPauseMs: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStarted = false;
  #isStopped = false;

  constructor(task: PeriodicWork, { random, pauseMs, longestPauseMs = pauseMs }: PeriodicTaskOptions) {
    this.#task = task;
    this.#random = random;
    this.#pauseMs = pauseMs;
    this.#longestPauseMs = longestPauseMs;
  }

  /** Starts with a pause before the first run. */
  start(): void {
    if (this.#isStarted || this.#isStopped) return;
    this.#isStarted = true;
    this.#schedule(this.#pauseMs);
  }

  /** Starts with a run. */
  startAtOnce(): void {
    if (this.#isStarted || this.#isStopped) return;
    this.#isStarted = true;
    this.#running = this.#run(this.#pauseMs);
  }

  /** Resolves when the current run has ended. After that none begins, even if `start` is called later. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(pauseMs: number): void {
    if (this.#isStopped) return;
    // Shortened, never extended: users rely on the pause as a maximum.
    const variedMs = pauseMs * (1 - (this.#random.bytes(1)[0] ?? 0) / 1024);
    this.#timer = setTimeout(() => {
      this.#running = this.#run(pauseMs);
    }, variedMs).unref();
  }

  async #run(pauseMs: number): Promise<void> {
    const isDone = await this.#task(() => !this.#isStopped);
    this.#schedule(
      isDone ? this.#pauseMs : Math.min(pauseMs * 2, Math.max(this.#longestPauseMs, this.#pauseMs)),
    );
  }
}

/** Does work in a run of a periodic task: logs a failure with `message`. */
export async function loggedRun(work: () => Promise<void>, log: Logger, message: string): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    log.warn({ err: error }, message);
    return false;
  }
}
