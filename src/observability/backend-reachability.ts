import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/logger.ts';

/** The part of an ended request that shows whether the backend could be reached. */
export interface BackendAttempt {
  readonly outcome: string;
  readonly failure: { readonly cause: string | undefined; readonly isUnreachable: boolean } | undefined;
}

/** After a failed connection, requests count as a sign of a reachable backend only when this time has passed. Milliseconds. */
const CALM_MS = 1000;

/** Logs when the backend becomes unreachable, and when it is reachable again: the lines of requests may be turned off, or many. */
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
