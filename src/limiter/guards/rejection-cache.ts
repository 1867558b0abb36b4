import type { Clock } from '../../platform/clock.ts';
import type { CountedDecision, Decision, LimitSubject, RateLimiter } from '../rate-limiter.ts';
import type { ChangeFeed } from '../record-versions.ts';
import { type DecidedWindow, type Limit, rejectingWindow } from '../request-limits.ts';

/**
 * Longest time, in milliseconds, for which a rejection is repeated without a call. The decision script stores the end of this time with the
 * key's version, and a change is acknowledged only after it: so the change takes effect even if its message on the feed is late or lost.
 */
const LONGEST_MS = 1000;
/** Most keys in the cache. When it is full, the oldest is dropped. */
const MAX_KEYS = 10_000;
/** Most windows remembered for a key, because each of its customers may have windows. */
const WINDOWS_PER_KEY = 16;

/** A window's state at a rejection. */
interface SeenWindow {
  readonly window: DecidedWindow;
  /** The customer, for a limit per customer; undefined for a limit per key. */
  readonly customerId: string | undefined;
  /** Until then no room comes back: the end of the window, or of the key's override. By the store's clock, milliseconds since 1970. */
  readonly holdsUntilMs: number;
  /** The store's time, which it read between the call and the decision, both by the process's monotonic clock. */
  readonly nowMs: number;
  readonly calledAt: number;
  readonly decidedAt: number;
}

interface RejectedKey {
  readonly version: string;
  /** Newest last. */
  readonly seen: readonly SeenWindow[];
}

/** What `RejectionCache` needs. */
export interface RejectionCacheOptions {
  readonly clock: Clock;
  readonly changes: ChangeFeed;
}

/**
 * Repeats a rejection of the inner limiter without another call. The state of each window is cached for at most one second, no longer than
 * the window lasts, and only for the same version of the key. A request is rejected without a call if a cached window has no room for it,
 * and all its windows are cached, so that the rejection has them. Once `WINDOWS_PER_KEY` are cached, those of its customer may be missing:
 * otherwise made-up customers would cost a call each. A change to the key drops its entries. The cache is not used for a `fresh` copy, a
 * degraded rejection, or a key whose windows may get room back (`mayRelease`). A key over its limit thus costs few calls per second and
 * replica, at any request rate.
 */
export class RejectionCache implements RateLimiter {
  readonly #inner: RateLimiter;
  readonly #clock: Clock;
  readonly #keys = new Map<string, RejectedKey>();
  #hits = 0;
  /** Number of changes received, of any key. */
  #changes = 0;

  constructor(inner: RateLimiter, { clock, changes }: RejectionCacheOptions) {
    this.#inner = inner;
    this.#clock = clock;
    changes.onChange((keyId) => {
      this.#changes += 1;
      this.#keys.delete(keyId);
    });
    changes.onReset(() => {
      this.#changes += 1;
      this.#keys.clear();
    });
  }

  /** Rejections repeated without a call to the inner limiter. */
  get hits(): number {
    return this.#hits;
  }

  /** Keys with rejections held. */
  get size(): number {
    return this.#keys.size;
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    if (subject.fresh || subject.mayRelease) {
      this.#inner.decide(subject, decided);
      return;
    }
    const calledAt = this.#clock.monotonicMs();
    const repeated = this.#repeat(subject, calledAt);
    if (repeated !== undefined) {
      this.#hits += 1;
      decided(repeated);
      return;
    }
    const changes = this.#changes;
    this.#inner.decide(subject, (decision) => {
      // A change that arrived while the call was in flight may be newer than the decision: the rejection may be outdated already.
      const isOld = changes !== this.#changes;
      if (!isOld && (decision.kind === 'limited' || decision.kind === 'allowed') && !decision.degraded) {
        if (decision.kind === 'limited') this.#remember(subject, decision, calledAt);
        else this.#update(subject, decision, calledAt);
      }
      decided(decision);
    });
  }

  #repeat(subject: LimitSubject, calledAt: number): Decision | undefined {
    const key = this.#keys.get(subject.keyId);
    if (key === undefined) return undefined;
    if (key.version !== subject.version) {
      this.#keys.delete(subject.keyId);
      return undefined;
    }
    const windows: DecidedWindow[] = [];
    let first: SeenWindow | undefined;
    for (const limit of subject.limits) {
      const seen = key.seen.find((each) => isOf(each, limit, subject.customerId) && holds(each, calledAt));
      if (seen !== undefined) {
        first ??= seen;
        windows.push(forCost(seen.window, subject.cost));
      } else if (limit.per === 'key' || key.seen.length < WINDOWS_PER_KEY) {
        return undefined;
      }
    }
    if (first === undefined || rejectingWindow(windows) === undefined) return undefined;
    return { kind: 'limited', windows, nowMs: storeTimeOf(first, calledAt), degraded: false };
  }

  /** Updates the counts of cached windows, but not their expiry: only a rejection stores its end with the key's version. */
  #update(
    { keyId, version, customerId }: LimitSubject,
    { windows }: CountedDecision,
    calledAt: number,
  ): void {
    const known = this.#keys.get(keyId);
    if (known?.version !== version) return;
    const held = known.seen.filter((seen) => holds(seen, calledAt));
    if (held.length === 0) {
      this.#keys.delete(keyId);
      return;
    }
    const seen = held.map((each) => {
      const window = windows.find(({ limit }) => isOf(each, limit, customerId));
      return window === undefined ? each : { ...each, window };
    });
    this.#keys.set(keyId, { version, seen });
  }

  /**
   * Caches the windows of a rejection. Their second begins with the call, before the store reads its clock: they expire up to one round
   * trip too early, never too late.
   */
  #remember(subject: LimitSubject, { windows, nowMs }: CountedDecision, calledAt: number): void {
    const { keyId, version, customerId } = subject;
    const decidedAt = this.#clock.monotonicMs();
    const found = windows.map((window): SeenWindow => {
      return {
        window,
        customerId: window.limit.per === 'customer' ? customerId : undefined,
        holdsUntilMs: holdsUntilMs(window, nowMs),
        nowMs,
        calledAt,
        decidedAt,
      };
    });
    const known = this.#keys.get(keyId);
    const others =
      known?.version === version
        ? known.seen.filter((seen) => !windows.some(({ limit }) => isOf(seen, limit, customerId)))
        : [];
    this.#keys.delete(keyId);
    if (this.#keys.size >= MAX_KEYS) {
      const oldest = this.#keys.keys().next();
      if (!oldest.done) this.#keys.delete(oldest.value);
    }
    const seen = [...others.filter((each) => holds(each, calledAt)), ...found].slice(-WINDOWS_PER_KEY);
    this.#keys.set(keyId, { version, seen });
  }
}

/** See `SeenWindow.holdsUntilMs`. An override that has ended stays on the key, and changes nothing any more. */
function holdsUntilMs({ limit: { endsAtMs }, resetAtMs }: DecidedWindow, nowMs: number): number {
  return endsAtMs !== null && nowMs < endsAtMs ? Math.min(endsAtMs, resetAtMs) : resetAtMs;
}

/** Whether a cached window is the one in which the limit counts requests of the customer. */
function isOf(seen: SeenWindow, limit: Limit, customerId: string): boolean {
  return seen.window.limit === limit && (seen.customerId ?? customerId) === customerId;
}

function holds({ nowMs, calledAt, holdsUntilMs }: SeenWindow, atMs: number): boolean {
  const sinceMs = atMs - calledAt;
  return sinceMs < LONGEST_MS && nowMs + Math.floor(sinceMs) < holdsUntilMs;
}

/** A lower bound of the store's clock at an instant of the monotonic clock: a client that waits from then on does not retry before the reset. */
function storeTimeOf({ nowMs, decidedAt }: SeenWindow, atMs: number): number {
  return nowMs + Math.floor(atMs - decidedAt);
}

/** The window for a request with another cost. */
function forCost(window: DecidedWindow, cost: number): DecidedWindow {
  const isExceeded = cost > 0 && window.used + cost > window.quota;
  return isExceeded === window.isExceeded ? window : { ...window, isExceeded };
}
