import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';
import { customerWindowName, OTHER_CUSTOMERS, windowNameOf } from '../customer-windows.ts';
import { windowEndMs } from '../period.ts';
import {
  type CostDifference,
  type CounterSubject,
  GRANT_REMEMBERED_MS,
  type GrantedUnits,
  type PassedThreshold,
  type ResetWindows,
  type SettledWindows,
  type WindowCounter,
  type WindowCounters,
  type WindowCounts,
} from '../window-counters.ts';
import { type OpenWindow, TOMBSTONE, type WindowTable } from './window-table.ts';

/** Most units that can be granted to one window in total. */
const MOST = 999_999_999_999_999;
/** Most grants remembered, counted for each window. */
const MAX_OPERATIONS = 10_000;

/** Reads and changes the windows of one process outside of decisions. */
export class InProcessWindowCounters implements WindowCounters {
  readonly #table: WindowTable;
  readonly #clock: Clock;
  /** When each operation has added to a window. Milliseconds since 1970. */
  readonly #operations = new BoundedCache<number>(MAX_OPERATIONS);
  /** The limit and the units granted when each threshold was last passed. */
  readonly #passed = new WeakMap<OpenWindow, Map<number, string>>();

  constructor(table: WindowTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  async read({ keyId, limits, customerId }: CounterSubject): Promise<WindowCounts> {
    const nowMs = this.#clock.nowMs();
    const counters = limits.map((limit): WindowCounter => {
      const { open } = this.#table.find({ keyId, customerId }, limit, nowMs);
      if (open === undefined) return { limit, used: 0, granted: 0, resetAtMs: null };
      return { limit, used: open.used + open.granted, granted: open.granted, resetAtMs: open.resetAtMs };
    });
    return { counters, nowMs };
  }

  readAll(subjects: readonly CounterSubject[]): Promise<readonly WindowCounts[]> {
    return Promise.all(subjects.map((subject) => this.read(subject)));
  }

  async reset({ keyId, limits, customerId }: ResetWindows): Promise<void> {
    for (const limit of limits) {
      if (limit.per === 'key') {
        this.#table.closeWindow(keyId, limit.windowName);
        continue;
      }
      if (customerId === null || customerId === OTHER_CUSTOMERS) {
        this.#table.closeWindow(keyId, customerWindowName(limit, OTHER_CUSTOMERS));
      }
      this.#table.closeCustomerWindows(keyId, (name) =>
        customerId === null
          ? name.startsWith(`${limit.windowName}:`)
          : name === customerWindowName(limit, customerId),
      );
    }
  }

  async grant({ keyId, limits, customerId, units, operationId }: GrantedUnits): Promise<void> {
    const nowMs = this.#clock.nowMs();
    if (this.#table.version(keyId, nowMs) === TOMBSTONE) return;
    for (const limit of limits) {
      if (!this.#isNew(operationId, keyId, windowNameOf(limit, customerId, false))) continue;
      const resetAtMs = windowEndMs(nowMs, limit.period);
      const { place, open = { resetAtMs, used: 0, granted: 0 } } = this.#table.find(
        { keyId, customerId },
        limit,
        nowMs,
      );
      open.used = Math.max(open.used - units, -MOST);
      open.granted = Math.min(open.granted + units, MOST);
      this.#table.openWindow(place, open, nowMs);
    }
  }

  async settle({ keyId, customerId, windows, units }: CostDifference): Promise<SettledWindows> {
    const nowMs = this.#clock.nowMs();
    const used = windows.map(({ limit, isShared, resetAtMs }) => {
      const isOfCustomer = limit.per === 'customer' && !isShared;
      const kind = isOfCustomer ? 'customerWindows' : 'windows';
      const open = this.#table.window(
        { keyId, kind, name: windowNameOf(limit, customerId, isShared) },
        nowMs,
      );
      if (open?.resetAtMs !== resetAtMs) return undefined;
      open.used += units;
      return open.used;
    });
    return { used, nowMs };
  }

  async passOnce({ keyId, limit, customerId, threshold, quota }: PassedThreshold): Promise<boolean> {
    const nowMs = this.#clock.nowMs();
    const { open } = this.#table.find({ keyId, customerId: customerId ?? '' }, limit, nowMs);
    // It was reset, or has ended, since it passed.
    if (open === undefined) return true;
    const passed = this.#passed.get(open) ?? new Map<number, string>();
    const state = `${quota} ${open.granted}`;
    const isFirst = passed.get(threshold) !== state;
    this.#passed.set(open, passed.set(threshold, state));
    return isFirst;
  }

  /** Whether an operation adds to a window for the first time in `GRANT_REMEMBERED_MS`. Remembers it. */
  #isNew(operationId: string | undefined, keyId: string, windowName: string): boolean {
    if (operationId === undefined) return true;
    const operation = JSON.stringify([operationId, keyId, windowName]);
    const nowMs = this.#clock.nowMs();
    const addedAtMs = this.#operations.get(operation);
    if (addedAtMs !== undefined && nowMs < addedAtMs + GRANT_REMEMBERED_MS) return false;
    this.#operations.set(operation, nowMs);
    return true;
  }
}
