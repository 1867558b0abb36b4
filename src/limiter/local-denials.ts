import type { Clock } from '../platform/clock.ts';
import type { Decision, LimitSubject, Quota, RateLimiter, WindowState } from './rate-limiter.ts';
import type { ChangeFeed } from './record-versions.ts';

/** The longest that a denial is repeated without asking: a change that the feed lost must not hold for longer. */
const LONGEST_MS = 1000;
const DEFAULT_CAPACITY = 10_000;

interface Denial {
  readonly version: string;
  readonly limit: number;
  readonly periodToken: string;
  readonly resetAtMs: number;
  /** The store's time and the process's monotonic time when the question was asked, to tell the store's time later. */
  readonly nowMs: number;
  readonly askedAt: number;
}

/** What `LocalDenials` needs. */
export interface LocalDenialsOptions {
  readonly clock: Clock;
  readonly changes: ChangeFeed;
  /** Denials held at most; when full the oldest goes. 10 000 unless told. */
  readonly capacity?: number;
}

/**
 * Repeats a denial of the inner limiter without asking again: until the window resets, for one second at most, and only for the
 * same version, limit and period. A change to the key forgets it. Never for a `fresh` copy, and never a degraded denial.
 * A key over its limit thus costs one call per second and replica, however hard it tries.
 */
export class LocalDenials implements RateLimiter {
  readonly #inner: RateLimiter;
  readonly #clock: Clock;
  readonly #capacity: number;
  readonly #denials = new Map<string, Denial>();
  #answered = 0;
  /** Changes of any key that were told. */
  #changes = 0;

  constructor(inner: RateLimiter, { clock, changes, capacity = DEFAULT_CAPACITY }: LocalDenialsOptions) {
    this.#inner = inner;
    this.#clock = clock;
    this.#capacity = capacity;
    changes.onChange((keyId) => {
      this.#changes += 1;
      this.#denials.delete(keyId);
    });
    changes.onReset(() => {
      this.#changes += 1;
      this.#denials.clear();
    });
  }

  /** Denials answered here, without a call to the inner limiter. */
  get answered(): number {
    return this.#answered;
  }

  /** Denials held. */
  get size(): number {
    return this.#denials.size;
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    if (subject.fresh) {
      this.#inner.decide(subject, decided);
      return;
    }
    const askedAt = this.#clock.monotonicMs();
    const repeated = this.#repeat(subject, askedAt);
    if (repeated !== undefined) {
      this.#answered += 1;
      decided(repeated);
      return;
    }
    const changes = this.#changes;
    this.#inner.decide(subject, (decision) => {
      // A change that was told while the answer was under way may have come after it in the store: the denial is old already.
      const isOld = changes !== this.#changes;
      if (decision.kind === 'denied' && !decision.degraded && !isOld)
        this.#remember(subject, decision, askedAt);
      decided(decision);
    });
  }

  peek(keyId: string, quota: Quota): Promise<WindowState> {
    return this.#inner.peek(keyId, quota);
  }

  #repeat({ keyId, version, quota }: LimitSubject, askedAt: number): Decision | undefined {
    const denial = this.#denials.get(keyId);
    if (denial === undefined) return undefined;
    const elapsedMs = askedAt - denial.askedAt;
    const nowMs = denial.nowMs + Math.floor(elapsedMs);
    const holds =
      elapsedMs < LONGEST_MS &&
      nowMs < denial.resetAtMs &&
      denial.version === version &&
      denial.limit === quota?.limit &&
      denial.periodToken === quota.period.token;
    if (holds) return { kind: 'denied', resetAtMs: denial.resetAtMs, nowMs, degraded: false };
    this.#denials.delete(keyId);
    return undefined;
  }

  /**
   * Counted from when the question was asked, which is before the store looked at its clock: so a denial is forgotten up to one
   * round trip too early, never too late.
   */
  #remember(subject: LimitSubject, denied: Decision & { kind: 'denied' }, askedAt: number): void {
    const { keyId, version, quota } = subject;
    if (quota === null) return;
    const { resetAtMs, nowMs } = denied;
    this.#denials.delete(keyId);
    if (this.#denials.size >= this.#capacity) {
      const oldest = this.#denials.keys().next();
      if (!oldest.done) this.#denials.delete(oldest.value);
    }
    const { limit, period } = quota;
    this.#denials.set(keyId, { version, limit, periodToken: period.token, resetAtMs, nowMs, askedAt });
  }
}
