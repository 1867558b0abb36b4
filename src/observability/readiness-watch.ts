import type { Logger } from '../platform/logger.ts';
import type { Readiness } from './readiness.ts';

const WHILE_STARTING_MS = 500;
const AFTERWARDS_MS = 5000;

/**
 * Looks at readiness all the time, so that the log tells why a replica is not ready, and its metrics are current, without anybody
 * asking: one line when a component turns out unfit or is fit again, and one when the replica is ready for the first time.
 */
export class ReadinessWatch {
  readonly #readiness: Readiness;
  readonly #log: Logger;
  readonly #unfit = new Map<string, string>();
  #isReady = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(readiness: Readiness, log: Logger) {
    this.#readiness = readiness;
    this.#log = log;
  }

  start(): void {
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
    for (const [component, state] of Object.entries(components)) this.#note(component, state);
    if (ready && !this.#isReady) {
      this.#isReady = true;
      this.#log.info('ready');
    }
    this.#timer = setTimeout(() => void this.#look(), this.#isReady ? AFTERWARDS_MS : WHILE_STARTING_MS);
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
