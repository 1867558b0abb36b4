import type { Platform } from '../platform/platform.ts';
import type { Readiness } from './readiness.ts';

/** Where all is well connections take no longer to come up: what is not fit before is no news, and what is becomes so any moment. */
const STARTING_MS = 1000;
const WHILE_STARTING_MS = 50;
const WHILE_WAITING_MS = 500;
const WHEN_READY_MS = 5000;

/**
 * Looks at readiness all the time, so that the log tells why a replica is not ready, and its metrics are current, without anybody
 * asking: one line when a component turns out unfit or is fit again, and one when the replica is ready for the first time.
 */
export class ReadinessWatch {
  readonly #readiness: Readiness;
  readonly #log: Platform['log'];
  readonly #clock: Platform['clock'];
  readonly #unfit = new Map<string, string>();
  #startedAtMs = 0;
  #isReady = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(readiness: Readiness, { log, clock }: Pick<Platform, 'log' | 'clock'>) {
    this.#readiness = readiness;
    this.#log = log;
    this.#clock = clock;
  }

  start(): void {
    this.#startedAtMs = this.#clock.monotonicMs();
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    await this.#readiness.check();
    if (this.#isStopped) return;
    const { ready, components } = this.#readiness.last();
    const isStarting = !ready && this.#clock.monotonicMs() - this.#startedAtMs < STARTING_MS;
    if (!isStarting) {
      for (const [component, state] of Object.entries(components)) this.#note(component, state);
    }
    if (ready && !this.#isReady) {
      this.#isReady = true;
      this.#log.info('ready');
    }
    const pauseMs = this.#isReady ? WHEN_READY_MS : isStarting ? WHILE_STARTING_MS : WHILE_WAITING_MS;
    this.#timer = setTimeout(() => void this.#look(), pauseMs);
  }

  #note(component: string, state: string): void {
    const before = this.#unfit.get(component);
    if (state === 'ok') {
      this.#unfit.delete(component);
      if (before !== undefined) this.#log.info({ component }, 'a component is fit again');
    } else if (before !== state) {
      this.#unfit.set(component, state);
      this.#log.error({ component, reason: state }, 'a component is not fit for use');
    }
  }
}
