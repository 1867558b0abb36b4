import type { Logger } from '../../platform/logger.ts';
import type { Deliverer } from './deliverer.ts';

/** The pauses between runs. Milliseconds. */
const BUSY_PAUSE_MS = 1000;
const STANDBY_PAUSE_MS = 5000;
/** Without a webhook: until a webhook that another replica made is noticed. */
const IDLE_PAUSE_MS = 60_000;
const TRIM_EVERY_MS = 3_600_000;

/** Runs a deliverer while there are webhooks; without one it looks for webhooks once a minute. Does not keep the process alive. */
export class DeliveryTask {
  readonly #deliverer: Pick<Deliverer, 'run' | 'trim' | 'stop'>;
  readonly #log: Logger;
  readonly #monotonicMs: () => number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isStarted = false;
  #isStopped = false;
  #isWoken = false;
  #isFailing = false;
  #trimmedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    deliverer: Pick<Deliverer, 'run' | 'trim' | 'stop'>,
    { log, monotonicMs }: { readonly log: Logger; readonly monotonicMs: () => number },
  ) {
    this.#deliverer = deliverer;
    this.#log = log;
    this.#monotonicMs = monotonicMs;
  }

  /** Call it once the tables exist. */
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

  /** Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#running;
    if (this.#isStarted) await this.#deliverer.stop();
  }

  async #run(): Promise<void> {
    this.#isWoken = false;
    const pauseMs = await this.#pauseAfterRun();
    this.#running = undefined;
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => this.wake(), this.#isWoken ? 0 : pauseMs);
    this.#timer.unref();
  }

  async #pauseAfterRun(): Promise<number> {
    try {
      const result = await this.#deliverer.run();
      this.#isFailing = false;
      if (result === 'another replica delivers') return STANDBY_PAUSE_MS;
      if (this.#monotonicMs() - this.#trimmedAtMs >= TRIM_EVERY_MS) {
        this.#trimmedAtMs = this.#monotonicMs();
        await this.#deliverer.trim();
      }
      return result === 'no webhooks' ? IDLE_PAUSE_MS : BUSY_PAUSE_MS;
    } catch (err) {
      if (!this.#isFailing) this.#log.warn({ err }, 'events could not be delivered; it is tried again');
      this.#isFailing = true;
      return STANDBY_PAUSE_MS;
    }
  }
}
