import type { Logger } from '../platform/logger.ts';
import { LAST_QUERY_BY_MS } from '../platform/process/shutdown-order.ts';
import { WakeableTask } from '../platform/wakeable-task.ts';
import type { JobRunner } from './job-runner.ts';
import type { JobStore } from './job-store.ts';

/** The pause between two looks for a job that another replica has left. Milliseconds. */
const IDLE_PAUSE_MS = 60_000;
/** The pause while a store is unavailable. */
const RETRY_PAUSE_MS = 2000;
const TRIM_EVERY_MS = 3_600_000;
/** How long a job is shown after its end. */
const KEPT_MS = 7 * 86_400_000;

interface JobTaskOptions {
  readonly runner: Pick<JobRunner, 'run' | 'interrupt'>;
  readonly store: Pick<JobStore, 'release' | 'trim'>;
  readonly holder: string;
  readonly clock: { nowMs(): number; monotonicMs(): number };
  readonly log: Logger;
}

/** Works on jobs as soon as they are made. Without any, it looks once a minute. Does not keep the process alive. */
export class JobTask {
  readonly #options: JobTaskOptions;
  readonly #task = new WakeableTask((goesOn) => this.#pauseAfterRun(goesOn));
  #isFailing = false;
  #trimmedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: JobTaskOptions) {
    this.#options = options;
  }

  /** Call it once the tables exist. */
  start(): void {
    this.#task.start();
  }

  /** Looks for jobs now, or once more after the present run. */
  wake(): void {
    this.#task.wake();
  }

  /** Resolves when nothing runs any more. Other replicas may go on with the jobs of this one. */
  async stop(): Promise<void> {
    const { runner, store, holder, clock, log } = this.#options;
    const fromMs = clock.monotonicMs();
    runner.interrupt();
    if ((await this.#task.stop()) && clock.monotonicMs() - fromMs <= LAST_QUERY_BY_MS)
      await store.release(holder).catch((err: unknown) => log.warn({ err }, 'jobs could not be released'));
  }

  async #pauseAfterRun(goesOn: () => boolean): Promise<number> {
    const { runner, store, clock, log } = this.#options;
    try {
      await runner.run();
      this.#isFailing = false;
      if (goesOn() && clock.monotonicMs() - this.#trimmedAtMs >= TRIM_EVERY_MS) {
        this.#trimmedAtMs = clock.monotonicMs();
        await store.trim(clock.nowMs(), KEPT_MS, goesOn);
      }
      return IDLE_PAUSE_MS;
    } catch (err) {
      if (!this.#isFailing) log.warn({ err }, 'a job can not go on; it is tried again');
      this.#isFailing = true;
      return RETRY_PAUSE_MS;
    }
  }
}
