import type { Clock } from '../../platform/clock.ts';
import { windowEndMs } from '../period.ts';
import type { Decision, LimitSubject, RateLimiter } from '../rate-limiter.ts';
import { isNewerVersion, VERSION_KEPT_MS } from '../record-versions.ts';
import { type DecidedWindow, type Limit, limitAt } from '../request-limits.ts';
import { type OpenWindow, TOMBSTONE, type WindowPlace, type WindowTable } from './window-table.ts';

/** A window that applies to a request: the open one, or the place where one would open. */
interface MetWindow {
  readonly limit: Limit;
  readonly place: WindowPlace;
  readonly open: OpenWindow | undefined;
  readonly quota: number;
  readonly isShared: boolean;
}

/**
 * Counts in memory: exact for one process, and lost with it. Decides as the script `decideRequests` does, by the process's clock, and calls
 * `decided` before `decide` returns.
 */
export class InProcessRateLimiter implements RateLimiter {
  readonly #table: WindowTable;
  readonly #clock: Clock;

  /** `table` is also that of the `InProcessRecordVersions` whose versions are compared. */
  constructor(table: WindowTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  decide(subject: LimitSubject, decided: (decision: Decision) => void): void {
    const nowMs = this.#clock.nowMs();
    decided(this.#isCurrent(subject, nowMs) ? this.#count(subject, nowMs) : { kind: 'stale' });
  }

  #isCurrent({ keyId, version, fresh }: LimitSubject, nowMs: number): boolean {
    const shared = this.#table.version(keyId, nowMs);
    if (shared === version) return true;
    // The key was deleted, whenever the copy was read.
    if (shared === TOMBSTONE) return false;
    // A fresh copy is used in any case, but replaces the shared version only if there is none, or an older one.
    if (fresh && (shared === undefined || isNewerVersion(version, shared))) {
      this.#table.setVersion(keyId, { version, expiresAtMs: nowMs + VERSION_KEPT_MS }, nowMs);
    }
    return fresh;
  }

  #count(subject: LimitSubject, nowMs: number): Decision {
    const { cost } = subject;
    if (subject.limits.length === 0) return { kind: 'unlimited', degraded: false };
    const met = this.#meet(subject, nowMs);
    const isLimited = met.some((window) => window.limit.mode === 'enforce' && isExceeded(window, cost));
    const windows = met.map((window) => {
      const isFull = isExceeded(window, cost);
      const isCounted = !isLimited && !isFull && cost > 0;
      const open = isCounted ? this.#add(window, cost, nowMs) : window.open;
      return decidedWindow({ ...window, open }, isFull, nowMs);
    });
    return { kind: isLimited ? 'limited' : 'allowed', windows, nowMs, degraded: false };
  }

  #meet({ keyId, limits, customerId }: LimitSubject, nowMs: number): MetWindow[] {
    let opening = 0;
    return limits.map((limit) => {
      const { place, open } = this.#table.find({ keyId, customerId, opening }, limit, nowMs);
      if (place.kind === 'customerWindows' && open === undefined) opening += 1;
      const isShared = limit.per === 'customer' && place.kind === 'windows';
      return { limit, place, open, quota: limitAt(limit, nowMs), isShared };
    });
  }

  #add({ limit, place, open }: MetWindow, cost: number, nowMs: number): OpenWindow {
    if (open !== undefined) {
      open.used += cost;
      return open;
    }
    const opened = { resetAtMs: windowEndMs(nowMs, limit.period), used: cost, granted: 0 };
    this.#table.openWindow(place, opened, nowMs);
    return opened;
  }
}

function isExceeded({ open, quota }: MetWindow, cost: number): boolean {
  return cost > 0 && (open?.used ?? 0) + cost > quota;
}

function decidedWindow(
  { limit, open, quota, isShared }: MetWindow,
  isExceeded: boolean,
  nowMs: number,
): DecidedWindow {
  return {
    limit,
    quota,
    used: open?.used ?? 0,
    resetAtMs: open?.resetAtMs ?? windowEndMs(nowMs, limit.period),
    isExceeded,
    isShared,
  };
}
