import type { Clock } from '../platform/clock.ts';
import type { CountRestorer } from './count-restorer.ts';
import type { Quota } from './rate-limiter.ts';

/** Keys remembered at most. */
const DEFAULT_CAPACITY = 10_000;
/** Keys given back together. */
const CHUNK_SIZE = 200;

interface Uncounted {
  readonly quota: Quota;
  readonly resetAtMs: number;
  /** Raised in place by the hot path of an outage. */
  count: number;
}

/** What `UncountedLedger` needs. */
export interface UncountedLedgerOptions {
  readonly restorer: CountRestorer;
  readonly clock: Clock;
  /** Keys remembered at most; requests of further ones are not given back. 10 000 unless told. */
  readonly capacity?: number;
}

/**
 * Remembers what a replica admitted on its own during an outage, and gives it back to the shared count once that answers again. Best
 * effort: of a key whose local window has ended nothing is given back, and what fails on the way is not tried again, because it
 * may have been added.
 */
export class UncountedLedger {
  readonly #options: Required<UncountedLedgerOptions>;
  #uncounted = new Map<string, Uncounted>();
  #givenBack = 0;

  constructor(options: UncountedLedgerOptions) {
    this.#options = { capacity: DEFAULT_CAPACITY, ...options };
  }

  /** Requests given back so far. */
  get givenBack(): number {
    return this.#givenBack;
  }

  /** Keys that wait to be given back. */
  get size(): number {
    return this.#uncounted.size;
  }

  /** Notes one request admitted in the local window that ends at `resetAtMs`. */
  note(keyId: string, quota: Quota, resetAtMs: number): void {
    const noted = this.#uncounted.get(keyId);
    if (noted?.resetAtMs === resetAtMs) {
      noted.count += 1;
    } else if (noted !== undefined || this.#uncounted.size < this.#options.capacity) {
      this.#uncounted.set(keyId, { quota, resetAtMs, count: 1 });
    }
  }

  /** Gives back what was noted, if anything. Call it when the shared count answers. Never rejects. */
  async giveBack(): Promise<void> {
    if (this.#uncounted.size === 0) return;
    const nowMs = this.#options.clock.nowMs();
    const open = [...this.#uncounted].filter(([, { resetAtMs }]) => resetAtMs > nowMs);
    this.#uncounted = new Map();
    for (let start = 0; start < open.length; start += CHUNK_SIZE) {
      await Promise.all(open.slice(start, start + CHUNK_SIZE).map((entry) => this.#restore(entry)));
    }
  }

  async #restore([keyId, { quota, count }]: [string, Uncounted]): Promise<void> {
    try {
      await this.#options.restorer.restore({ keyId, quota, count });
      this.#givenBack += count;
    } catch {
      // Not known whether it was added: adding it again could deny requests that are allowed.
    }
  }
}
