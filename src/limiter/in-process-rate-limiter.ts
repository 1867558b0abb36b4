import type { Clock } from '../platform/clock.ts';
import { windowEndMs } from './period.ts';
import type { Decision, LimitSubject, Quota, RateLimiter, WindowState } from './rate-limiter.ts';
import type { WindowTable } from './window-table.ts';

/** Milliseconds that an installed version is kept. */
const VERSION_KEPT_MS = 3_600_000;

/**
 * Counts in the process: exact for one process, gone with it. Decides as the script `admitRequest` does, by the process's clock, and
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

  async peek(keyId: string, quota: Quota): Promise<WindowState> {
    const nowMs = this.#clock.nowMs();
    const window = this.#table.window(keyId, nowMs);
    if (window === undefined || window.periodToken !== quota.period.token) {
      return { used: 0, resetAtMs: null, nowMs };
    }
    return { used: window.used, resetAtMs: window.resetAtMs, nowMs };
  }

  #isCurrent({ keyId, version, fresh }: LimitSubject, nowMs: number): boolean {
    const shared = this.#table.version(keyId, nowMs);
    if (shared === version) return true;
    // A fresh copy decides whatever is stored, but is installed only where nothing is.
    if (fresh && shared === undefined) {
      this.#table.setVersion(keyId, { version, lapsesAtMs: nowMs + VERSION_KEPT_MS }, nowMs);
    }
    return fresh;
  }

  #count({ keyId, quota }: LimitSubject, nowMs: number): Decision {
    if (quota === null) return { kind: 'unlimited', degraded: false };
    const { limit, period } = quota;
    const window = this.#table.window(keyId, nowMs);
    if (window === undefined || window.periodToken !== period.token) {
      const resetAtMs = windowEndMs(nowMs, period);
      this.#table.setWindow(keyId, { periodToken: period.token, resetAtMs, used: 1 }, nowMs);
      return { kind: 'admitted', remaining: limit - 1, resetAtMs, nowMs, degraded: false };
    }
    const { resetAtMs } = window;
    if (window.used >= limit) return { kind: 'denied', resetAtMs, nowMs, degraded: false };
    window.used += 1;
    return { kind: 'admitted', remaining: limit - window.used, resetAtMs, nowMs, degraded: false };
  }
}
