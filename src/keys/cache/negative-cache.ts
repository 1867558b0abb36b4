import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';

/** Remembers for a short time which secrets name no key, so that a client that goes on with a wrong one costs no look-up. */
export class NegativeCache {
  readonly #until: LRUCache<string, number>;
  readonly #ttlMs: number;
  readonly #clock: Clock;

  /** At most `maxEntries` digests, each for `ttlMs`. */
  constructor(maxEntries: number, ttlMs: number, clock: Clock) {
    this.#until = new LRUCache({ max: maxEntries });
    this.#ttlMs = ttlMs;
    this.#clock = clock;
  }

  has(digest: string): boolean {
    const until = this.#until.get(digest);
    return until !== undefined && this.#clock.monotonicMs() < until;
  }

  add(digest: string): void {
    this.#until.set(digest, this.#clock.monotonicMs() + this.#ttlMs);
  }
}
