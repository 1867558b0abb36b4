import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';

/** What is known of a request to the backend that is over. */
export interface BackendAttempt {
  readonly outcome: string;
  readonly failure: { readonly cause: string | undefined; readonly isUnreachable: boolean } | undefined;
}

/** Time without a failed connection after which the backend counts as reachable again. Milliseconds. */
const CALM_MS = 1000;

/** Logs once that there is no connection to the backend, and once that there is again: the lines of requests may be off, or many. */
export class BackendReachability {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #backend: string;
  #isUnreachable = false;
  #failedAtMs = 0;

  /** `backend` is its host and port. */
  constructor(backend: string, { log, clock }: { readonly log: Logger; readonly clock: Clock }) {
    this.#backend = backend;
    this.#log = log;
    this.#clock = clock;
  }

  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }

  observe({ outcome, failure }: BackendAttempt): void {
    if (failure?.isUnreachable === true) this.#failed(failure.cause);
    else if (this.#isUnreachable && outcome === 'forwarded') this.#succeeded();
  }

  #failed(cause: string | undefined): void {
    this.#failedAtMs = this.#clock.monotonicMs();
    if (this.#isUnreachable) return;
    this.#isUnreachable = true;
    this.#log.error(
      { event: 'backend_unreachable', backend: this.#backend, cause },
      'there is no connection to the backend',
    );
  }

  #succeeded(): void {
    if (this.#clock.monotonicMs() - this.#failedAtMs < CALM_MS) return;
    this.#isUnreachable = false;
    this.#log.info(
      { event: 'backend_reachable', backend: this.#backend },
      'the backend can be reached again',
    );
  }
}
