/** The open window of a key. */
export interface OpenWindow {
  readonly periodToken: string;
  readonly resetAtMs: number;
  /** Raised in place by the hot path. */
  used: number;
}

/** A shared version, a mark or a tombstone, and when it lapses. */
export interface StoredVersion {
  readonly version: string;
  readonly lapsesAtMs: number;
}

/** The value of a record that is being changed, of one that several changes overlap on, and of a deleted one. */
export const MARK = '*';
export const OVERLAPPING_MARK = '**';
export const TOMBSTONE = '-';

interface Entry {
  window: OpenWindow | undefined;
  version: StoredVersion | undefined;
}

/** Entries looked at for each new one: two, so that the table is swept faster than it can grow. */
const SWEPT_PER_INSERT = 2;

/**
 * What Redis holds for the gateway, for one process: windows and versions by key, each with an end. What has ended is treated as
 * absent, and removed by and by as new keys come in, with no timer. So the table holds at most about twice the keys that were
 * used within their period or changed within the last hour; ids of keys that don't exist never get here.
 */
export class WindowTable {
  readonly #entries = new Map<string, Entry>();
  #sweep: Iterator<[string, Entry]> = this.#entries.entries();

  /** Number of keys held, ended ones that were not removed yet included. */
  get size(): number {
    return this.#entries.size;
  }

  window(keyId: string, nowMs: number): OpenWindow | undefined {
    const window = this.#entries.get(keyId)?.window;
    return window !== undefined && window.resetAtMs > nowMs ? window : undefined;
  }

  /** Undefined closes the window. */
  setWindow(keyId: string, window: OpenWindow | undefined, nowMs: number): void {
    this.#entry(keyId, nowMs).window = window;
  }

  version(keyId: string, nowMs: number): string | undefined {
    const stored = this.#entries.get(keyId)?.version;
    return stored !== undefined && stored.lapsesAtMs > nowMs ? stored.version : undefined;
  }

  setVersion(keyId: string, stored: StoredVersion, nowMs: number): void {
    this.#entry(keyId, nowMs).version = stored;
  }

  #entry(keyId: string, nowMs: number): Entry {
    let entry = this.#entries.get(keyId);
    if (entry === undefined) {
      this.#sweepSome(nowMs);
      entry = { window: undefined, version: undefined };
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
      const [keyId, { window, version }] = next.value;
      const hasEnded = (window?.resetAtMs ?? 0) <= nowMs && (version?.lapsesAtMs ?? 0) <= nowMs;
      if (hasEnded) this.#entries.delete(keyId);
    }
  }
}
