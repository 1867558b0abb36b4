import { customerWindowName, MAX_CUSTOMER_WINDOWS, OTHER_CUSTOMERS } from '../customer-windows.ts';
import type { Limit } from '../request-limits.ts';

/** An open window. */
export interface OpenWindow {
  readonly resetAtMs: number;
  /** Units counted, minus those granted. Changed in place by the hot path. */
  used: number;
  /** Units granted beyond the limit. */
  granted: number;
}

/** A shared version, a mark or a tombstone, and when it expires. */
export interface StoredVersion {
  readonly version: string;
  readonly expiresAtMs: number;
}

/** In place of a version: for a key that is being changed, for one with overlapping changes, and for a deleted one. */
export const MARK = '*';
export const OVERLAPPING_MARK = '**';
export const TOMBSTONE = '-';

interface Entry {
  /** By window name. */
  readonly windows: Map<string, OpenWindow>;
  /** The windows of customers, separate because their number is bounded. */
  readonly customerWindows: Map<string, OpenWindow>;
  version: StoredVersion | undefined;
}

/** Which of a key's windows: those of the key, or those of its customers. */
type WindowKind = 'windows' | 'customerWindows';

/** Where a window is in the table. */
export interface WindowPlace {
  readonly keyId: string;
  readonly kind: WindowKind;
  readonly name: string;
}

interface FoundWindow {
  readonly place: WindowPlace;
  readonly open: OpenWindow | undefined;
}

/** A customer of a key. */
interface CountedCustomer {
  readonly keyId: string;
  readonly customerId: string;
  /** Windows of customers that the same request is about to open. */
  readonly opening?: number;
}

/** Entries looked at for each new one: two, so that the table is swept faster than it can grow. */
const SWEPT_PER_INSERT = 2;

/**
 * Holds in one process what Redis holds for the gateway: windows and versions by key, each with an end. Ended ones are treated as absent,
 * and removed gradually as new keys come in, without a timer. So the table holds at most about twice the keys that were used within their
 * period or changed within the last hour; ids of keys that don't exist never get here.
 */
export class WindowTable {
  readonly #entries = new Map<string, Entry>();
  #sweep: Iterator<[string, Entry]> = this.#entries.entries();

  /** Number of keys, including ended ones that are not removed yet. */
  get size(): number {
    return this.#entries.size;
  }

  /** Where a limit counts a customer, and the window that is open there. Customers beyond the bound share one. */
  find({ keyId, customerId, opening = 0 }: CountedCustomer, limit: Limit, nowMs: number): FoundWindow {
    if (limit.per === 'key') return this.#at({ keyId, kind: 'windows', name: limit.windowName }, nowMs);
    const name = customerWindowName(limit, customerId);
    const own = this.#at({ keyId, kind: 'customerWindows', name }, nowMs);
    if (own.open !== undefined) return own;
    const isOther =
      customerId === OTHER_CUSTOMERS ||
      this.#hasCustomerWindows(keyId, MAX_CUSTOMER_WINDOWS - opening, nowMs);
    if (!isOther) return own;
    return this.#at({ keyId, kind: 'windows', name: customerWindowName(limit, OTHER_CUSTOMERS) }, nowMs);
  }

  /** The open window of a place. */
  window({ keyId, kind, name }: WindowPlace, nowMs: number): OpenWindow | undefined {
    const window = this.#entries.get(keyId)?.[kind].get(name);
    return window !== undefined && window.resetAtMs > nowMs ? window : undefined;
  }

  openWindow({ keyId, kind, name }: WindowPlace, window: OpenWindow, nowMs: number): void {
    this.#entry(keyId, nowMs)[kind].set(name, window);
  }

  /** Closes a window of the key. */
  closeWindow(keyId: string, name: string): void {
    this.#entries.get(keyId)?.windows.delete(name);
  }

  /** Closes the windows of customers whose names `isMeant` accepts. */
  closeCustomerWindows(keyId: string, isMeant: (name: string) => boolean): void {
    const windows = this.#entries.get(keyId)?.customerWindows;
    for (const name of windows?.keys() ?? []) if (isMeant(name)) windows?.delete(name);
  }

  /** Closes all windows of a key. */
  closeAll(keyId: string): void {
    const entry = this.#entries.get(keyId);
    entry?.windows.clear();
    entry?.customerWindows.clear();
  }

  version(keyId: string, nowMs: number): string | undefined {
    const stored = this.#entries.get(keyId)?.version;
    return stored !== undefined && stored.expiresAtMs > nowMs ? stored.version : undefined;
  }

  setVersion(keyId: string, stored: StoredVersion, nowMs: number): void {
    this.#entry(keyId, nowMs).version = stored;
  }

  #at(place: WindowPlace, nowMs: number): FoundWindow {
    return { place, open: this.window(place, nowMs) };
  }

  /** Whether a key has at least `count` open windows of customers. Looks through them only where there may be that many. */
  #hasCustomerWindows(keyId: string, count: number, nowMs: number): boolean {
    const windows = this.#entries.get(keyId)?.customerWindows;
    if (windows === undefined || windows.size < count) return false;
    removeEnded(windows, nowMs);
    return windows.size >= count;
  }

  #entry(keyId: string, nowMs: number): Entry {
    let entry = this.#entries.get(keyId);
    if (entry === undefined) {
      this.#sweepSome(nowMs);
      entry = { windows: new Map(), customerWindows: new Map(), version: undefined };
      this.#entries.set(keyId, entry);
    }
    return entry;
  }

  #sweepSome(nowMs: number): void {
    for (let looked = 0; looked < SWEPT_PER_INSERT; looked += 1) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#entries.entries();
        return;
      }
      const [keyId, { windows, customerWindows, version }] = next.value;
      removeEnded(windows, nowMs);
      removeEnded(customerWindows, nowMs);
      const hasVersion = (version?.expiresAtMs ?? 0) > nowMs;
      if (windows.size + customerWindows.size === 0 && !hasVersion) this.#entries.delete(keyId);
    }
  }
}

function removeEnded(windows: Map<string, OpenWindow>, nowMs: number): void {
  for (const [name, { resetAtMs }] of windows) if (resetAtMs <= nowMs) windows.delete(name);
}
