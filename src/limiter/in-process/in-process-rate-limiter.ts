import type { Clock } from '../../platform/clock.ts';
import type { DecidedWindow } from '../decided-window.ts';
import { customerWindowName, type Limit, limitAt, MAX_CUSTOMER_WINDOWS, OTHER_CUSTOMERS } from '../limit.ts';
import { windowEndMs } from '../period.ts';
import type { Decision, LimitSubject, RateLimiter } from '../rate-limiter.ts';
import { isNewerVersion } from '../record-versions.ts';
import { type OpenWindow, TOMBSTONE, type WindowTable } from './window-table.ts';

/** Milliseconds that an installed version is kept. */
const VERSION_KEPT_MS = 3_600_000;

/** A window that a request meets: the open one, or the name under which one would open. */
interface MetWindow {
  readonly limit: Limit;
  readonly kind: 'windows' | 'customerWindows';
  readonly name: string;
  readonly open: OpenWindow | undefined;
  readonly quota: number;
  readonly isShared: boolean;
}

/**
 * Counts in the process: exact for one process, gone with it. Decides as the script `decideRequests` does, by the process's clock, and
 * calls back before `decide` returns.
 */
export class InProcessRateLimiter implements RateLimiter {
  readonly #table: WindowTable;
  readonly #clock: Clock;

  /** Shares `table` with the `InProcessRecordVersions` that are to be compared with. */
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
    // Gone for good, whenever the copy was read.
    if (shared === TOMBSTONE) return false;
    // A fresh copy decides in any case, but is installed only where nothing is, or something older.
    if (fresh && (shared === undefined || isNewerVersion(version, shared))) {
      this.#table.setVersion(keyId, { version, lapsesAtMs: nowMs + VERSION_KEPT_MS }, nowMs);
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
      const open = isCounted ? this.#add(subject.keyId, window, cost, nowMs) : window.open;
      return decidedWindow(window, open, isFull, nowMs);
    });
    return { kind: isLimited ? 'limited' : 'allowed', windows, nowMs, degraded: false };
  }

  #meet({ keyId, limits, customerId }: LimitSubject, nowMs: number): MetWindow[] {
    let opening = 0;
    return limits.map((limit) => {
      const quota = limitAt(limit, nowMs);
      if (limit.per === 'key') return this.#ofKey(keyId, limit, limit.windowName, quota, nowMs);
      const name = customerWindowName(limit, customerId);
      const open = this.#table.window(keyId, 'customerWindows', name, nowMs);
      if (open === undefined) {
        const isOther = customerId === OTHER_CUSTOMERS;
        if (isOther || this.#table.hasCustomerWindows(keyId, MAX_CUSTOMER_WINDOWS - opening, nowMs)) {
          const shared = customerWindowName(limit, OTHER_CUSTOMERS);
          return { ...this.#ofKey(keyId, limit, shared, quota, nowMs), isShared: true };
        }
        opening += 1;
      }
      return { limit, kind: 'customerWindows', name, open, quota, isShared: false };
    });
  }

  #ofKey(keyId: string, limit: Limit, name: string, quota: number, nowMs: number): MetWindow {
    const open = this.#table.window(keyId, 'windows', name, nowMs);
    return { limit, kind: 'windows', name, open, quota, isShared: false };
  }

  #add(keyId: string, { limit, kind, name, open }: MetWindow, cost: number, nowMs: number): OpenWindow {
    if (open !== undefined) {
      open.used += cost;
      return open;
    }
    const opened = { resetAtMs: windowEndMs(nowMs, limit.period), used: cost, granted: 0 };
    this.#table.openWindow(keyId, kind, name, opened, nowMs);
    return opened;
  }
}

function isExceeded({ open, quota }: MetWindow, cost: number): boolean {
  return cost > 0 && (open?.used ?? 0) + cost > quota;
}

function decidedWindow(
  { limit, quota, isShared }: MetWindow,
  open: OpenWindow | undefined,
  isFull: boolean,
  nowMs: number,
): DecidedWindow {
  return {
    limit,
    quota,
    used: open?.used ?? 0,
    resetAtMs: open?.resetAtMs ?? windowEndMs(nowMs, limit.period),
    isExceeded: isFull,
    isShared,
  };
}
