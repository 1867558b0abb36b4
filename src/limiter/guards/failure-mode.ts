import type { Clock } from '../../platform/clock.ts';
import { NotCounted } from '../not-counted.ts';
import type { CountedDecision, Decision, LimitSubject, RateLimiter } from '../rate-limiter.ts';
import { DegradedWindows } from './degraded-windows.ts';

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
  /** Called for each request that was allowed locally and is certainly not in the shared counters. */
  readonly onUncounted?: (subject: LimitSubject, decision: CountedDecision) => void;
  /** Called after each `allowed` or `limited` decision of the inner limiter: the store responds. `nowMs` is the store's time. */
  readonly onShared?: (nowMs: number) => void;
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
  /** When the last decision was made, by the monotonic clock; undefined if the inner limiter made it. */
  #aloneAtMs: number | undefined;

  constructor(inner: RateLimiter, options: FailureModeOptions) {
    this.#inner = inner;
    this.#options = options;
    this.#windows = new DegradedWindows(options.clock);
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
        this.#options.onShared?.(decision.nowMs);
      }
      decided(decision);
    });
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
      this.#options.onUncounted?.(subject, decision);
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
