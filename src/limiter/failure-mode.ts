import type { Clock } from '../platform/clock.ts';
import { NotCounted } from './not-counted.ts';
import type { Decision, LimitSubject, Quota, RateLimiter, WindowState } from './rate-limiter.ts';

/**
 * What happens while the shared count can't be asked. `local`: each replica admits its share; `open`: everything is
 * admitted; `closed`: nothing is decided, the request gets a 503.
 */
export type FailureMode = 'local' | 'open' | 'closed';

/** Decisions by kind, counted from the start of the process. */
export interface DecisionCounts {
  readonly admitted: number;
  readonly denied: number;
  readonly unlimited: number;
  readonly stale: number;
  readonly unavailable: number;
}

/** What `FailureModeLimiter` needs. */
export interface FailureModeOptions {
  readonly mode: FailureMode;
  readonly clock: Clock;
  /** Counts on this replica only, in a table of its own. Must call back before `decide` returns. */
  readonly local: RateLimiter;
  /** Replicas that share a limit, this one included; at least 1. */
  readonly liveReplicas: () => number;
  /** Told of each request that was admitted locally and that the shared count certainly does not hold. */
  readonly onUncounted?: (keyId: string, quota: Quota, resetAtMs: number) => void;
  /** Called with each decision of the inner limiter: it answers. */
  readonly onShared?: () => void;
}

/** Where nobody asks, nothing is found out: a decision without the inner limiter says nothing about now after that long. Milliseconds. */
const DEGRADED_MS = 60_000;

/**
 * Decides where the inner limiter is `unavailable`, and marks those decisions as `degraded`. In `local` mode a replica admits the
 * limit divided by the live replicas, rounded up. Versions can't be compared then: the copy at hand decides.
 */
export class FailureModeLimiter implements RateLimiter {
  /** Decisions of the inner limiter; `unavailable` counts those that the failure mode had to take over. */
  readonly shared: DecisionCounts = noDecisions();
  /** Decisions that the failure mode made; `unavailable` in mode `closed`. */
  readonly degraded: DecisionCounts = noDecisions();
  readonly #inner: RateLimiter;
  readonly #options: FailureModeOptions;
  /** When the last decision was made without the inner limiter, by the monotonic clock; undefined when the inner one made it. */
  #aloneAtMs: number | undefined;

  constructor(inner: RateLimiter, options: FailureModeOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  /** Whether the last decision was made without the inner limiter, in every mode, and less than a minute ago. */
  get isDegraded(): boolean {
    return this.#aloneAtMs !== undefined && this.#options.clock.monotonicMs() - this.#aloneAtMs < DEGRADED_MS;
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    this.#inner.decide(subject, (decision) => {
      count(this.shared, decision);
      if (decision.kind !== 'unavailable') {
        this.#aloneAtMs = undefined;
        this.#options.onShared?.();
        decided(decision);
        return;
      }
      this.#aloneAtMs = this.#options.clock.monotonicMs();
      this.#decideAlone(subject, decision, (alone) => {
        count(this.degraded, alone);
        decided(alone);
      });
    });
  }

  /** Of the shared count, in every mode: a replica's own count is not the key's. */
  peek(keyId: string, quota: Quota): Promise<WindowState> {
    return this.#inner.peek(keyId, quota);
  }

  #decideAlone(
    subject: LimitSubject,
    unavailable: Decision & { kind: 'unavailable' },
    decided: (decision: Decision) => void,
  ): void {
    switch (this.#options.mode) {
      case 'closed':
        decided(unavailable);
        return;
      case 'open':
        decided({ kind: 'unlimited', degraded: true });
        return;
      case 'local':
        this.#decideOnShare(subject, unavailable.cause, decided);
    }
  }

  #decideOnShare(subject: LimitSubject, cause: Error, decided: (decision: Decision) => void): void {
    const { quota } = subject;
    if (quota === null) {
      decided({ kind: 'unlimited', degraded: true });
      return;
    }
    const share = Math.ceil(quota.limit / Math.max(this.#options.liveReplicas(), 1));
    // Fresh, because there is nothing to compare the copy with.
    const alone: LimitSubject = { ...subject, fresh: true, quota: { ...quota, limit: share } };
    this.#options.local.decide(alone, (decision) => {
      if (decision.kind !== 'admitted' && decision.kind !== 'denied') {
        decided(decision);
        return;
      }
      // A call without an answer may have been counted in the store all the same.
      if (decision.kind === 'admitted' && cause instanceof NotCounted) {
        this.#options.onUncounted?.(subject.keyId, quota, decision.resetAtMs);
      }
      decided({ ...decision, degraded: true });
    });
  }
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

function noDecisions(): DecisionCounts {
  return { admitted: 0, denied: 0, unlimited: 0, stale: 0, unavailable: 0 };
}

/** In place: it is done for every request. */
function count(counts: Mutable<DecisionCounts>, decision: Decision): void {
  counts[decision.kind] += 1;
}
