import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import type { SettleAlone } from '../cost-settler.ts';
import { NotCounted, UnreadableCounts } from '../not-counted.ts';
import type { CountedDecision, Decision, LimitSubject, RateLimiter } from '../rate-limiter.ts';
import type { ChangeFeed } from '../record-versions.ts';
import type { CostDifference } from '../window-counters.ts';
import { CountRestorer, type RestorableCounters } from './count-restorer.ts';
import { DegradedWindows } from './degraded-windows.ts';
import { RejectionCache } from './rejection-cache.ts';

/**
 * What happens while the shared limiter is unavailable. `local`: each replica allows its share of what was left; `open`: everything is
 * allowed; `closed`: nothing is decided, the request gets a 503.
 */
export type FailureMode = 'local' | 'open' | 'closed';

/** Decisions by kind, counted from the start of the process. */
export interface DecisionCounts {
  readonly allowed: number;
  readonly limited: number;
  readonly unlimited: number;
  readonly stale: number;
  readonly unavailable: number;
}

/** What `FailureModeLimiter` needs. */
export interface FailureModeOptions {
  readonly mode: FailureMode;
  readonly clock: Clock;
  /** Replicas that share a limit, this one included; at least 1. */
  readonly liveReplicas: () => number;
  /** Gets what was allowed locally and is certainly not in the shared counters, and gives it back once the store responds. */
  readonly restorer: Pick<CountRestorer, 'size' | 'note' | 'settle' | 'unitsOf' | 'giveBack'>;
}

/** How long the limiter counts as degraded after a decision without the inner limiter, if no request follows. Milliseconds. */
const DEGRADED_MS = 60_000;

/**
 * Decides instead of an inner limiter that is `unavailable`, and marks these decisions as `degraded`. In `local` mode a replica allows its
 * share (see `DegradedWindows`). Versions can't be compared meanwhile, so the cached copy of the key is used even if it is stale.
 */
export class FailureModeLimiter implements RateLimiter {
  /** Decisions of the inner limiter; `unavailable` counts those that the failure mode made instead. */
  readonly shared: DecisionCounts = noDecisions();
  /** Decisions that the failure mode made; `unavailable` in mode `closed`. */
  readonly degraded: DecisionCounts = noDecisions();
  readonly #inner: RateLimiter;
  readonly #options: FailureModeOptions;
  readonly #windows: DegradedWindows;
  /** Decisions whose cost the backend may report, and whose units are certainly not in the shared counters. */
  readonly #uncounted = new WeakSet<CountedDecision>();
  /** When the last decision was made, by the monotonic clock; undefined if the inner limiter made it. */
  #aloneAtMs: number | undefined;

  constructor(inner: RateLimiter, options: FailureModeOptions) {
    this.#inner = inner;
    this.#options = options;
    const { clock, restorer } = options;
    this.#windows = new DegradedWindows(clock, (subject, limit, nowMs) =>
      restorer.unitsOf(subject, limit, nowMs),
    );
  }

  /** The time by the store's clock, as far as it is known. Milliseconds since 1970. */
  get sharedNowMs(): number {
    return this.#windows.nowMs;
  }

  /** Whether the last decision was made without the inner limiter, in every mode, and less than a minute ago. */
  get isDegraded(): boolean {
    return this.#aloneAtMs !== undefined && this.#options.clock.monotonicMs() - this.#aloneAtMs < DEGRADED_MS;
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    this.#inner.decide(subject, (decision) => {
      count(this.shared, decision);
      if (decision.kind === 'unavailable') {
        this.#aloneAtMs = this.#options.clock.monotonicMs();
        const alone = this.#decideAlone(subject, decision);
        count(this.degraded, alone);
        decided(alone);
        return;
      }
      this.#aloneAtMs = undefined;
      if (decision.kind === 'allowed' || decision.kind === 'limited') {
        this.#windows.learn(subject, decision);
        const { restorer } = this.#options;
        if (restorer.size > 0) void restorer.giveBack(decision.nowMs);
      }
      decided(decision);
    });
  }

  /** See `SettleAlone`. */
  settle(decision: CountedDecision, difference: CostDifference): boolean {
    const nowMs = this.sharedNowMs;
    const windows = difference.windows.filter(({ resetAtMs }) => resetAtMs > nowMs);
    if (windows.length === 0) return true;
    this.#windows.settle({ ...difference, windows });
    return this.#uncounted.has(decision) && this.#options.restorer.settle({ ...difference, windows }, nowMs);
  }

  #decideAlone(subject: LimitSubject, unavailable: Decision & { kind: 'unavailable' }): Decision {
    switch (this.#options.mode) {
      case 'closed':
        return unavailable;
      case 'open':
        return { kind: 'unlimited', degraded: true };
      case 'local':
        return this.#decideOnShare(subject, unavailable.cause);
    }
  }

  #decideOnShare(subject: LimitSubject, cause: Error): Decision {
    if (subject.limits.length === 0) return { kind: 'unlimited', degraded: true };
    const decision = this.#windows.decide(subject, this.#options.liveReplicas());
    // A call without a response may have been counted in the store all the same.
    if (decision.kind === 'allowed' && cause instanceof NotCounted) {
      this.#options.restorer.note(subject, decision);
      if (subject.mayRelease) this.#uncounted.add(decision);
    }
    return decision;
  }
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

function noDecisions(): DecisionCounts {
  return { allowed: 0, limited: 0, unlimited: 0, stale: 0, unavailable: 0 };
}

/** In place: it is done for every request. */
function count(counts: Mutable<DecisionCounts>, decision: Decision): void {
  counts[decision.kind] += 1;
}

/** `closed`: calls go through. `open`: none does. `half-open`: one does, to try. */
export type CircuitState = 'closed' | 'open' | 'half-open';

/** The cause of an `unavailable` that the breaker decided itself: the store was certainly not called. */
export class CircuitOpen extends NotCounted {
  constructor() {
    super('the store is not called while its circuit is open');
  }
}

interface CircuitBreakerOptions {
  readonly clock: Clock;
  /** Called after each change of state, for the log. */
  readonly onStateChange?: (state: CircuitState) => void;
  /** Called for each decision about a key whose counts can't be read, for the log. */
  readonly onUnreadable?: (keyId: string, cause: UnreadableCounts) => void;
}

/** Consecutive failures that open the circuit. */
const FAILURES_IN_ROW = 5;
/** Share of failed calls that opens the circuit, after at least `FEWEST_CALLS` within `SPAN_MS`. Milliseconds. */
const FAILURE_RATIO = 0.5;
const FEWEST_CALLS = 20;
const SPAN_MS = 10_000;
/** The first pause before a trial; it doubles with each failed trial, up to the longest. Milliseconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5000;

/**
 * Stops calling the inner limiter while it is unavailable, so that a slow store does not make every request wait for its timeout. While the
 * circuit is open, decisions are `unavailable` with the cause `CircuitOpen`. After a pause one request goes through as a trial: a response
 * of any kind closes the circuit, a failure doubles the pause. There is no timer: without requests there is no trial. That the counts of one
 * key can't be read is a response.
 */
export class CircuitBreaker implements RateLimiter {
  readonly #inner: RateLimiter;
  readonly #clock: Clock;
  readonly #onStateChange: (state: CircuitState) => void;
  readonly #onUnreadable: (keyId: string, cause: UnreadableCounts) => void;
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

  constructor(
    inner: RateLimiter,
    { clock, onStateChange = () => {}, onUnreadable = () => {} }: CircuitBreakerOptions,
  ) {
    this.#inner = inner;
    this.#clock = clock;
    this.#onStateChange = onStateChange;
    this.#onUnreadable = onUnreadable;
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
      const unreadable =
        decision.kind === 'unavailable' && decision.cause instanceof UnreadableCounts
          ? decision.cause
          : undefined;
      if (unreadable !== undefined) this.#onUnreadable(subject.keyId, unreadable);
      if (epoch === this.#epoch) this.#note(decision.kind === 'unavailable' && unreadable === undefined);
      decided(decision);
    });
  }

  #mayCall(): boolean {
    if (this.#state === 'closed') return true;
    if (this.#state === 'half-open' || this.#clock.monotonicMs() < this.#pausedUntil) return false;
    this.#enter('half-open');
    return true;
  }

  #note(hasFailed: boolean): void {
    if (this.#state === 'half-open') {
      if (hasFailed) this.#open(Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS));
      else this.#close();
      return;
    }
    const nowMs = this.#clock.monotonicMs();
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
    const isFailing = this.#calls >= FEWEST_CALLS && this.#failures >= FAILURE_RATIO * this.#calls;
    if (this.#failuresInRow < FAILURES_IN_ROW && !isFailing) return;
    this.#openings += 1;
    this.#open(FIRST_PAUSE_MS);
  }

  #open(pauseMs: number): void {
    this.#pauseMs = pauseMs;
    this.#pausedUntil = this.#clock.monotonicMs() + pauseMs;
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

/** What guarding a shared limiter needs. */
export interface GuardOptions extends CircuitBreakerOptions, Omit<FailureModeOptions, 'restorer'> {
  readonly random: Random;
  readonly changes: ChangeFeed;
  readonly counters: RestorableCounters;
}

/** A shared limiter with its guards. The parts are exposed for their metrics. */
export interface GuardedRateLimiter {
  /** The limiter behind the guards. */
  readonly limiter: RateLimiter;
  readonly rejectionCache: RejectionCache;
  readonly failureMode: FailureModeLimiter;
  readonly breaker: CircuitBreaker;
  readonly restorer: CountRestorer;
  readonly settleAlone: SettleAlone;
}

/**
 * Puts the guards around a limiter that lives in another process, from the inside out: the circuit breaker, which does not call a failing
 * store; the failure mode, which decides instead; the rejection cache, so that a key over its limit does not cost a call for each request.
 */
export function guardRateLimiter(shared: RateLimiter, options: GuardOptions): GuardedRateLimiter {
  const restorer = new CountRestorer(options);
  const breaker = new CircuitBreaker(shared, options);
  const failureMode = new FailureModeLimiter(breaker, { ...options, restorer });
  const rejectionCache = new RejectionCache(failureMode, options);
  const settleAlone: SettleAlone = (decision, difference) => failureMode.settle(decision, difference);
  return { limiter: rejectionCache, rejectionCache, failureMode, breaker, restorer, settleAlone };
}
