import type { Clock } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import type { RateLimiter } from '../rate-limiter.ts';
import type { ChangeFeed } from '../record-versions.ts';
import { CircuitBreaker, type CircuitState } from './circuit-breaker.ts';
import { CountRestorer, type RestorableCounters } from './count-restorer.ts';
import { type FailureMode, FailureModeLimiter } from './failure-mode.ts';
import { RejectionCache } from './rejection-cache.ts';

/** What guarding a shared limiter needs. */
export interface GuardOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly changes: ChangeFeed;
  readonly mode: FailureMode;
  readonly liveReplicas: () => number;
  readonly counters: RestorableCounters;
  readonly onCircuitChange?: (state: CircuitState) => void;
}

/** A shared limiter with its guards. The parts are exposed for their metrics. */
export interface GuardedRateLimiter {
  /** The limiter behind the guards. */
  readonly limiter: RateLimiter;
  readonly rejectionCache: RejectionCache;
  readonly failureMode: FailureModeLimiter;
  readonly breaker: CircuitBreaker;
  readonly restorer: CountRestorer;
}

/**
 * Puts the guards around a limiter that lives in another process, from the inside out: the circuit breaker, which does not call a failing
 * store; the failure mode, which decides instead; the rejection cache, so that a key over its limit does not cost a call for each request.
 */
export function guardRateLimiter(shared: RateLimiter, options: GuardOptions): GuardedRateLimiter {
  const { clock, random, changes, mode, liveReplicas, counters, onCircuitChange } = options;
  const restorer = new CountRestorer({ counters, clock, random });
  const breaker = new CircuitBreaker(shared, {
    clock,
    ...(onCircuitChange !== undefined && { onStateChange: onCircuitChange }),
  });
  const failureMode = new FailureModeLimiter(breaker, {
    mode,
    clock,
    liveReplicas,
    onUncounted: (subject, decision) => restorer.note(subject, decision),
    onShared: (nowMs) => {
      if (restorer.size > 0) void restorer.giveBack(nowMs);
    },
  });
  const rejectionCache = new RejectionCache(failureMode, { clock, changes });
  return { limiter: rejectionCache, rejectionCache, failureMode, breaker, restorer };
}
