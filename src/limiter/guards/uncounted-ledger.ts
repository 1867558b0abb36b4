import type { DecidedWindow } from '../decided-window.ts';
import { NotCounted } from '../not-counted.ts';
import type { CountedDecision, LimitSubject } from '../rate-limiter.ts';
import type { CountRestorer, UncountedUnits } from './count-restorer.ts';

/** Windows remembered at most. */
const DEFAULT_CAPACITY = 10_000;
/** Windows given back together. */
const CHUNK_SIZE = 200;
/** How long to wait where nothing was added: decisions come by the thousand, and each is an occasion. Milliseconds. */
const RETRY_MS = 500;

interface Uncounted extends UncountedUnits {
  readonly resetAtMs: number;
  /** Raised in place by the hot path of an outage. */
  units: number;
}

/** What `UncountedLedger` needs. */
export interface UncountedLedgerOptions {
  readonly restorer: CountRestorer;
  /** Windows remembered at most; what is counted in further ones is not given back. 10 000 by default. */
  readonly capacity?: number;
}

/**
 * Remembers what a replica allowed on its own during an outage, and gives it back to the shared count once that responds again. Best
 * effort: of a key whose local window has ended nothing is given back, and a failed call is retried only where it is certain that
 * nothing was added.
 */
export class UncountedLedger {
  readonly #options: Required<UncountedLedgerOptions>;
  #uncounted = new Map<string, Uncounted>();
  #givenBack = 0;
  /** No earlier try, by the time of the shared count. Milliseconds since 1970. */
  #againAtMs = 0;

  constructor(options: UncountedLedgerOptions) {
    this.#options = { capacity: DEFAULT_CAPACITY, ...options };
  }

  /** Units given back so far. */
  get givenBack(): number {
    return this.#givenBack;
  }

  /** Windows that wait to be given back. */
  get size(): number {
    return this.#uncounted.size;
  }

  /** Notes what an allowed request was counted as in its local windows. */
  note(subject: LimitSubject, { windows }: CountedDecision): void {
    if (subject.cost === 0) return;
    for (const window of windows) if (!window.isExceeded) this.#noteOne(subject, window);
  }

  #noteOne({ keyId, customerId: whose, cost }: LimitSubject, { limit, resetAtMs }: DecidedWindow): void {
    const customerId = limit.per === 'customer' ? whose : '';
    this.#add({ keyId, limit, customerId, resetAtMs, units: cost });
  }

  #add(added: Uncounted): void {
    const { keyId, limit, customerId, resetAtMs, units } = added;
    const name = `${keyId} ${limit.windowName} ${customerId}`;
    const noted = this.#uncounted.get(name);
    if (noted?.resetAtMs === resetAtMs) {
      noted.units += units;
    } else if (noted !== undefined || this.#uncounted.size < this.#options.capacity) {
      this.#uncounted.set(name, added);
    }
  }

  /** Gives back what was noted, if anything. Call it when the shared count responds, with its time. Never rejects. */
  async giveBack(nowMs: number): Promise<void> {
    if (this.#uncounted.size === 0 || nowMs < this.#againAtMs) return;
    const open = [...this.#uncounted.values()].filter(({ resetAtMs }) => resetAtMs > nowMs);
    this.#uncounted = new Map();
    for (let start = 0; start < open.length; start += CHUNK_SIZE) {
      const chunk = open.slice(start, start + CHUNK_SIZE);
      const areAdded = await Promise.all(chunk.map((entry) => this.#restore(entry)));
      if (areAdded.every(Boolean)) continue;
      this.#againAtMs = nowMs + RETRY_MS;
      for (const entry of open.slice(start + CHUNK_SIZE)) this.#add(entry);
      return;
    }
  }

  /** Resolves with false for an entry that is kept, because it certainly was not added. */
  async #restore(entry: Uncounted): Promise<boolean> {
    const { keyId, limit, customerId, units } = entry;
    try {
      await this.#options.restorer.restore({ keyId, limit, customerId, units });
      this.#givenBack += units;
      return true;
    } catch (error) {
      // It may have been added: adding it twice could limit requests that should be allowed.
      if (!(error instanceof NotCounted)) return true;
      this.#add(entry);
      return false;
    }
  }
}
