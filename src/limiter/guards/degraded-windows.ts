import type { Clock } from '../../platform/clock.ts';
import { customerWindowName } from '../customer-windows.ts';
import { windowEndMs } from '../period.ts';
import type { CountedDecision, LimitSubject } from '../rate-limiter.ts';
import { type DecidedWindow, type Limit, limitAt, remainingIn } from '../request-limits.ts';
import type { CostDifference } from '../window-counters.ts';

/** Most keys, as many as a replica caches, and most windows of customers that are remembered. The oldest entry is dropped first. */
const MAX_REMEMBERED = 100_000;

/** The last known state of an open window. Changed in place, because each request updates it. */
interface Window {
  readonly name: string;
  limit: number;
  /** What remained at the last shared decision; the whole limit for a window that was opened here. */
  remaining: number;
  /** By the shared clock. Milliseconds since 1970. */
  resetAtMs: number;
  /** Units allowed here that the last shared decision did not count. */
  usedAlone: number;
}

/** Units of a window that were allowed here and that the shared count lacks at a time by the shared clock. */
type UncountedUnitsOf = (subject: LimitSubject, limit: Limit, nowMs: number) => number;

/** A window for a request that is decided without the shared count. */
interface MetWindow {
  readonly limit: Limit;
  readonly quota: number;
  readonly known: Window | undefined;
  readonly share: number;
  readonly resetAtMs: number;
  readonly isExceeded: boolean;
}

/**
 * Decides while the shared limiter is unavailable. In a window that the replica knows, it may allow its share of what remained at the last
 * shared decision, until the window ends; in any other window, its share of the limit. So an exhausted window stays exhausted. A share is
 * rounded up, and is at least the cost of the request if that much remains: otherwise no replica would ever allow an expensive request.
 */
export class DegradedWindows {
  readonly #clock: Clock;
  readonly #uncountedUnits: UncountedUnitsOf;
  /** By key id. A key has few windows. */
  readonly #ofKeys = new Map<string, Window[]>();
  /** By key id and window name. */
  readonly #ofCustomers = new Map<string, Window>();
  /** The shared clock minus this process's monotonic one; undefined before the first shared decision. */
  #sharedAheadMs: number | undefined = undefined;
  #heardAtMs = 0;

  constructor(clock: Clock, uncountedUnits: UncountedUnitsOf = () => 0) {
    this.#clock = clock;
    this.#uncountedUnits = uncountedUnits;
  }

  /** The time by the shared clock, as far as it is known. Milliseconds since 1970. */
  get nowMs(): number {
    return this.#sharedAheadMs === undefined
      ? this.#clock.nowMs()
      : Math.floor(this.#sharedAheadMs + this.#clock.monotonicMs());
  }

  /** Stores the result of a shared decision. Called with each request. */
  learn(subject: LimitSubject, { windows, nowMs }: CountedDecision): void {
    // The clocks are compared once for all decisions of the same millisecond.
    if (nowMs !== this.#heardAtMs) {
      this.#heardAtMs = nowMs;
      this.#sharedAheadMs = nowMs - this.#clock.monotonicMs();
    }
    for (const decided of windows) {
      const window = this.#find(subject, decided.limit) ?? this.#add(subject, decided.limit);
      window.limit = decided.quota;
      window.remaining = remainingIn(decided);
      window.resetAtMs = decided.resetAtMs;
      // What is not given back yet is not in the shared count: otherwise each short return of the store would open a new share.
      window.usedAlone = this.#uncountedUnits(subject, decided.limit, nowMs);
    }
  }

  /** Decides for one of `replicas` replicas, and counts the request when it is allowed. At least one limit must apply. */
  decide(subject: LimitSubject, replicas: number): CountedDecision {
    const nowMs = this.nowMs;
    const at = { nowMs, replicas };
    const met = subject.limits.map((limit) => this.#meet(subject, limit, at));
    const isLimited = met.some(({ limit, isExceeded }) => isExceeded && limit.mode === 'enforce');
    const windows = met.map((window) => {
      const isCounted = !isLimited && !window.isExceeded && subject.cost > 0;
      const usedAlone = isCounted ? this.#count(subject, window) : (window.known?.usedAlone ?? 0);
      return decidedWindow(window, usedAlone);
    });
    return { kind: isLimited ? 'limited' : 'allowed', windows, nowMs, degraded: true };
  }

  /** Adds the difference to what was allowed here, in each window that is still the same. */
  settle({ windows, units, ...whose }: CostDifference): void {
    for (const { limit, resetAtMs } of windows) {
      const window = this.#find(whose, limit);
      if (window?.resetAtMs === resetAtMs) window.usedAlone = Math.max(window.usedAlone + units, 0);
    }
  }

  #meet(
    subject: LimitSubject,
    limit: Limit,
    { nowMs, replicas }: { readonly nowMs: number; readonly replicas: number },
  ): MetWindow {
    const { cost, askedCost = cost } = subject;
    const quota = limitAt(limit, nowMs);
    const found = this.#find(subject, limit);
    const known = found !== undefined && found.resetAtMs > nowMs ? found : undefined;
    // The limit may have changed since the last shared decision.
    const left = known === undefined ? quota : Math.max(known.remaining + quota - known.limit, 0);
    const share = Math.max(Math.ceil(left / Math.max(replicas, 1)), Math.min(askedCost, left));
    const isExceeded = cost > 0 && (known?.usedAlone ?? 0) + cost > share;
    const resetAtMs = known?.resetAtMs ?? windowEndMs(nowMs, limit.period);
    return { limit, quota, known, share, resetAtMs, isExceeded };
  }

  #count(subject: LimitSubject, { limit, quota, known, resetAtMs }: MetWindow): number {
    const window = known ?? this.#find(subject, limit) ?? this.#add(subject, limit);
    if (known === undefined) {
      window.limit = quota;
      window.remaining = quota;
      window.resetAtMs = resetAtMs;
      window.usedAlone = 0;
    }
    window.usedAlone += subject.cost;
    return window.usedAlone;
  }

  #find({ keyId, customerId }: Pick<LimitSubject, 'keyId' | 'customerId'>, limit: Limit): Window | undefined {
    if (limit.per === 'customer') {
      return this.#ofCustomers.get(keyId + customerWindowName(limit, customerId));
    }
    const windows = this.#ofKeys.get(keyId) ?? [];
    for (const window of windows) if (window.name === limit.windowName) return window;
    return undefined;
  }

  #add({ keyId, customerId }: LimitSubject, limit: Limit): Window {
    const window = { name: limit.windowName, limit: 0, remaining: 0, resetAtMs: 0, usedAlone: 0 };
    if (limit.per === 'customer') {
      makeRoom(this.#ofCustomers);
      this.#ofCustomers.set(keyId + customerWindowName(limit, customerId), window);
      return window;
    }
    const windows = this.#ofKeys.get(keyId);
    if (windows === undefined) {
      makeRoom(this.#ofKeys);
      this.#ofKeys.set(keyId, [window]);
    } else {
      // Ended windows of an earlier plan are removed.
      const nowMs = this.nowMs;
      this.#ofKeys.set(keyId, [...windows.filter(({ resetAtMs }) => resetAtMs > nowMs), window]);
    }
    return window;
  }
}

function decidedWindow({ limit, share, resetAtMs, isExceeded }: MetWindow, used: number): DecidedWindow {
  return { limit, quota: share, used, resetAtMs, isExceeded, isShared: false };
}

function makeRoom(map: Map<string, unknown>): void {
  if (map.size < MAX_REMEMBERED) return;
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}
