import type { Logger } from '../../platform/logger.ts';
import { WakeableTask } from '../../platform/wakeable-task.ts';
import type { TimedEvents } from '../timed/timed-events.ts';
import type { Deliverer } from './deliverer.ts';
import type { Backlog } from './delivery.ts';

/** The pauses between runs. Milliseconds. */
const BUSY_PAUSE_MS = 1000;
const STANDBY_PAUSE_MS = 5000;
/** Without a webhook: until a webhook that another replica made is noticed. */
const IDLE_PAUSE_MS = 60_000;
const TRIM_EVERY_MS = 3_600_000;
/** How late an event that time brings about may be. */
const TIMED_EVERY_MS = 20_000;
const COUNT_EVERY_MS = 30_000;

/** What `DeliveryTask` is built from. */
export interface DeliveryTaskOptions {
  readonly deliverer: Pick<Deliverer, 'run' | 'backlog' | 'trim' | 'stop'>;
  readonly timed: Pick<TimedEvents, 'run'>;
  readonly log: Logger;
  readonly monotonicMs: () => number;
}

/**
 * Makes the events that time brings about, and runs a deliverer while there are webhooks; without one it looks for webhooks and streams
 * once a minute. Does not keep the process alive.
 */
export class DeliveryTask {
  readonly #options: DeliveryTaskOptions;
  readonly #task = new WakeableTask(() => this.#pauseAfterRun());
  /** For metrics; undefined while another replica delivers. */
  backlog: Backlog | undefined;
  #countedAtMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #trimmedAtMs = Number.NEGATIVE_INFINITY;
  /** When no timed event was left; it is looked for some again later. */
  #timedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: DeliveryTaskOptions) {
    this.#options = options;
  }

  /** Call it once the tables exist. */
  start(): void {
    this.#task.start();
  }

  /** Runs it now, or once more after the present run. */
  wake(): void {
    this.#task.wake();
  }

  /** Resolves when nothing runs any more. */
  async stop(): Promise<void> {
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
      const hasMoreTimed = await this.#makeTimed();
      if (monotonicMs() - this.#trimmedAtMs >= TRIM_EVERY_MS) {
        this.#trimmedAtMs = monotonicMs();
        await deliverer.trim();
      }
      if (hasMoreTimed || result === 'behind') return 0;
      return result === 'no webhooks' ? IDLE_PAUSE_MS : BUSY_PAUSE_MS;
    } catch (err) {
      if (!this.#isFailing) log.warn({ err }, 'events could not be delivered; it is tried again');
      this.#isFailing = true;
      return STANDBY_PAUSE_MS;
    }
  }

  /** Resolves with whether there may be more to make. */
  async #makeTimed(): Promise<boolean> {
    const { timed, monotonicMs } = this.#options;
    if (monotonicMs() - this.#timedAtMs < TIMED_EVERY_MS) return false;
    const hasMore = await timed.run();
    if (!hasMore) this.#timedAtMs = monotonicMs();
    return hasMore;
  }
}
