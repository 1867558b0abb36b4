import type { Clock } from '../../platform/clock.ts';
import { NotCounted } from '../not-counted.ts';
import type { Decision, LimitSubject, RateLimiter } from '../rate-limiter.ts';

/** `closed`: calls go through. `open`: none does. `half-open`: one does, to try. */
export type CircuitState = 'closed' | 'open' | 'half-open';

/** The cause of an `unavailable` that the breaker decided itself: the store was certainly not called. */
export class CircuitOpen extends NotCounted {
  constructor() {
    super('the store is not called while its circuit is open');
  }
}

/** When the breaker opens and how long it waits. */
export interface CircuitBreakerOptions {
  readonly clock: Clock;
  /** Called after each change of state, for the log. */
  readonly onStateChange?: (state: CircuitState) => void;
  /** Consecutive failures that open the circuit. 5 by default. */
  readonly failuresInRow?: number;
  /** Share of failed calls that opens the circuit, after at least 20 calls within ten seconds. 0.5 by default. */
  readonly failureRatio?: number;
  /** The first pause before a trial, in milliseconds; it doubles with each failed trial. 250 by default. */
  readonly firstPauseMs?: number;
  /** The longest pause in milliseconds. 5000 by default. */
  readonly longestPauseMs?: number;
}

const SPAN_MS = 10_000;
const FEWEST_CALLS = 20;

/**
 * Stops calling the inner limiter while it is unavailable, so that a slow store does not make every request wait for its timeout. While the
 * circuit is open, decisions are `unavailable` with the cause `CircuitOpen`. After a pause one request goes through as a trial: a response
 * of any kind closes the circuit, a failure doubles the pause. There is no timer: without requests there is no trial.
 */
export class CircuitBreaker implements RateLimiter {
  readonly #inner: RateLimiter;
  readonly #options: Required<Omit<CircuitBreakerOptions, 'onStateChange'>>;
  readonly #onStateChange: (state: CircuitState) => void;
  #state: CircuitState = 'closed';
  /** Raised with every change of state: responses to calls from before the change are ignored. */
  #epoch = 0;
  #failuresInRow = 0;
  #calls = 0;
  #failures = 0;
  #spanEndsAt = 0;
  #pauseMs = 0;
  #pausedUntil = 0;
  #openings = 0;

  constructor(inner: RateLimiter, options: CircuitBreakerOptions) {
    const { onStateChange = () => {}, ...rest } = options;
    this.#inner = inner;
    this.#onStateChange = onStateChange;
    this.#options = {
      failuresInRow: 5,
      failureRatio: 0.5,
      firstPauseMs: 250,
      longestPauseMs: 5000,
      ...rest,
    };
  }

  get state(): CircuitState {
    return this.#state;
  }

  /** How often the circuit opened. A failed trial does not count. */
  get openings(): number {
    return this.#openings;
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    if (!this.#mayCall()) {
      decided({ kind: 'unavailable', cause: new CircuitOpen() });
      return;
    }
    const epoch = this.#epoch;
    this.#inner.decide(subject, (decision) => {
      if (epoch === this.#epoch) this.#note(decision.kind === 'unavailable');
      decided(decision);
    });
  }

  #mayCall(): boolean {
    if (this.#state === 'closed') return true;
    if (this.#state === 'half-open' || this.#options.clock.monotonicMs() < this.#pausedUntil) return false;
    this.#enter('half-open');
    return true;
  }

  #note(hasFailed: boolean): void {
    if (this.#state === 'half-open') {
      if (hasFailed) this.#open(Math.min(this.#pauseMs * 2, this.#options.longestPauseMs));
      else this.#close();
      return;
    }
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs >= this.#spanEndsAt) {
      this.#calls = 0;
      this.#failures = 0;
      this.#spanEndsAt = nowMs + SPAN_MS;
    }
    this.#calls += 1;
    if (!hasFailed) {
      this.#failuresInRow = 0;
      return;
    }
    this.#failures += 1;
    this.#failuresInRow += 1;
    const { failuresInRow, failureRatio, firstPauseMs } = this.#options;
    const isFailing = this.#calls >= FEWEST_CALLS && this.#failures >= failureRatio * this.#calls;
    if (this.#failuresInRow < failuresInRow && !isFailing) return;
    this.#openings += 1;
    this.#open(firstPauseMs);
  }

  #open(pauseMs: number): void {
    this.#pauseMs = pauseMs;
    this.#pausedUntil = this.#options.clock.monotonicMs() + pauseMs;
    this.#enter('open');
  }

  #close(): void {
    this.#failuresInRow = 0;
    this.#spanEndsAt = 0;
    this.#enter('closed');
  }

  #enter(state: CircuitState): void {
    this.#state = state;
    this.#epoch += 1;
    this.#onStateChange(state);
  }
}
