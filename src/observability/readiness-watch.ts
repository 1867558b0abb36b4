import type { Platform } from '../platform/platform.ts';
import type { ComponentState, Readiness } from './readiness.ts';

/** Time that connections usually take to come up. Before it has passed, components that are not ready are not logged. */
const STARTING_MS = 1000;
const WHILE_STARTING_MS = 50;
const WHILE_WAITING_MS = 500;
const WHEN_READY_MS = 5000;

/**
 * Polls readiness, so that the log and the metrics are current without a probe. Logs one line when a component becomes unhealthy or healthy
 * again, and one when the replica is ready for the first time.
 */
export class ReadinessWatch {
  readonly #readiness: Readiness;
  readonly #log: Platform['log'];
  readonly #clock: Platform['clock'];
  readonly #unhealthy = new Map<string, { readonly text: string; readonly sinceMs: number }>();
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
    const { ready } = this.#readiness.last();
    const isStarting = !ready && this.#clock.monotonicMs() - this.#startedAtMs < STARTING_MS;
    if (!isStarting) {
      for (const [component, state] of this.#readiness.states()) this.#note(component, state);
    }
    if (ready && !this.#isReady) {
      this.#isReady = true;
      this.#log.info('ready');
    }
    const pauseMs = this.#isReady ? WHEN_READY_MS : isStarting ? WHILE_STARTING_MS : WHILE_WAITING_MS;
    this.#timer = setTimeout(() => void this.#look(), pauseMs);
  }

  #note(component: string, { text, level }: ComponentState): void {
    const before = this.#unhealthy.get(component);
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = before?.sinceMs ?? nowMs;
    if (text === 'ok') {
      this.#unhealthy.delete(component);
      const seconds = Math.round((nowMs - sinceMs) / 1000);
      if (before !== undefined) this.#log.info({ component, seconds }, 'a component is healthy again');
    } else if (before?.text !== text) {
      this.#unhealthy.set(component, { text, sinceMs });
      this.#log[level]({ component, reason: text }, 'a component is unhealthy');
    }
  }
}
