/**
 * Runs a task again and again, after the pause that each run resolves with, or at once when it is woken. Never runs it twice at a time, and does
 * not keep the process alive.
 */
export class WakeableTask {
  readonly #runOnce: (goesOn: () => boolean) => Promise<number>;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStarted = false;
  #isStopped = false;
  #isWoken = false;

  /**
   * `runOnce` never rejects, and resolves with the pause until the next run, in milliseconds. It ends early once `goesOn` returns false:
   * the task is to stop.
   */
  constructor(runOnce: (goesOn: () => boolean) => Promise<number>) {
    this.#runOnce = runOnce;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  start(): void {
    this.#isStarted = true;
    this.wake();
  }

  /** Runs it now, or once more after the present run. */
  wake(): void {
    this.#isWoken = true;
    if (!this.#isStarted || this.#isStopped || this.#running !== undefined) return;
    clearTimeout(this.#timer);
    this.#running = this.#run();
  }

  /** Resolves when nothing runs any more, with whether a run was under way. */
  async stop(): Promise<boolean> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    const wasRunning = this.#running !== undefined;
    await this.#running;
    return wasRunning;
  }

  async #run(): Promise<void> {
    this.#isWoken = false;
    const pauseMs = await this.#runOnce(() => !this.#isStopped);
    this.#running = undefined;
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => this.wake(), this.#isWoken ? 0 : pauseMs).unref();
  }
}
