import type { Logger } from '../../platform/logger.ts';
import { WakeableTask } from '../../platform/wakeable-task.ts';
import type { TimedEvents, TimedResult } from '../timed/timed-events.ts';
import type { Deliverer } from './deliverer.ts';
import type { Backlog } from './delivery.ts';

/** The pauses between runs. Milliseconds. */
const BUSY_PAUSE_MS = 1000;
const STANDBY_PAUSE_MS = 5000;
/** Without a webhook or a stream: until one at another replica is noticed. */
const IDLE_PAUSE_MS = 60_000;
const TRIM_EVERY_MS = 3_600_000;
/** How late an event that time brings about may be. */
const TIMED_EVERY_MS = 20_000;
const COUNT_EVERY_MS = 30_000;

/** What `DeliveryTask` is built from. */
export interface DeliveryTaskOptions {
  readonly deliverer: Pick<Deliverer, 'run' | 'backlog' | 'trim' | 'beginStop' | 'stop'>;
  readonly timed: Pick<TimedEvents, 'run' | 'stop'>;
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

/**
 * Makes the events that time brings about, and runs a deliverer while there are webhooks; without one it looks for webhooks and streams
 * once a minute. Call `wake` when one begins to hear. Does not keep the process alive.
 */
export class DeliveryTask {
  readonly #options: DeliveryTaskOptions;
  readonly #task = new WakeableTask(() => this.#pauseAfterRun());
  /** For metrics; undefined while another replica delivers. */
  backlog: Backlog | undefined;
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #isStopping = false;
  #trimmedAtMs = Number.NEGATIVE_INFINITY;
  /** When no timed event was left; it is looked for some again later, or when something begins to hear them. */
  #timedAtMs = Number.NEGATIVE_INFINITY;
  #timedResult: TimedResult = 'unheard';
  /** The calls of `wake`, and how many there had been when timed events were made last. */
  #wakes = 0;
  #timedAfter = 0;

  constructor(options: DeliveryTaskOptions) {
    this.#options = options;
  }

  /** Call it once the tables exist. */
  start(): void {
    this.#task.start();
  }

  /** Runs it now, or once more after the present run. */
  wake(): void {
    this.#wakes += 1;
    this.#task.wake();
  }

  /** Ends a run after its present page. Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#options.deliverer.beginStop();
    this.#options.timed.stop();
    await this.#task.stop();
    if (this.#task.isStarted) await this.#options.deliverer.stop();
  }

  async #pauseAfterRun(): Promise<number> {
    const { deliverer, monotonicMs, log } = this.#options;
    try {
      const result = await deliverer.run();
      this.#isFailing = false;
      if (result === 'another replica delivers') {
        this.backlog = undefined;
        return STANDBY_PAUSE_MS;
      }
      if (this.backlog === undefined || monotonicMs() - this.#countedAtMs >= COUNT_EVERY_MS) {
        this.#countedAtMs = monotonicMs();
        this.backlog = await deliverer.backlog();
      }
      const timedResult = await this.#makeTimed();
      const isTrimmed = await this.#isTrimmed();
      if (timedResult === 'more' || result === 'behind') return 0;
      if (result !== 'no webhooks' || !isTrimmed) return BUSY_PAUSE_MS;
      return timedResult === 'unheard' ? IDLE_PAUSE_MS : TIMED_EVERY_MS;
    } catch (err) {
      if (!this.#isFailing) log.warn({ err }, 'events could not be delivered; it is tried again');
      this.#isFailing = true;
      return STANDBY_PAUSE_MS;
    }
  }

  /** Removes what is not needed any more. Resolves with false if the next run goes on with that; it rests for an hour otherwise. */
  async #isTrimmed(): Promise<boolean> {
    const { deliverer, monotonicMs, log } = this.#options;
    if (this.#isStopping || monotonicMs() - this.#trimmedAtMs < TRIM_EVERY_MS) return true;
    try {
      if (await deliverer.trim()) return false;
    } catch (err) {
      log.warn({ err }, 'old events and deliveries could not all be removed; it is tried again in an hour');
    }
    this.#trimmedAtMs = monotonicMs();
    return true;
  }

  /** Makes the timed events that are due, and resolves with what is left. */
  async #makeTimed(): Promise<TimedResult> {
    const { timed, monotonicMs } = this.#options;
    const isDue = this.#timedAfter !== this.#wakes || monotonicMs() - this.#timedAtMs >= TIMED_EVERY_MS;
    if (this.#isStopping || !isDue) return this.#timedResult;
    const wakes = this.#wakes;
    this.#timedResult = await timed.run();
    if (this.#timedResult === 'more') return 'more';
    this.#timedAtMs = monotonicMs();
    this.#timedAfter = wakes;
    return this.#timedResult;
  }
}
