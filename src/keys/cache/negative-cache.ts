import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';

/** How many unknown secrets are remembered, and for how long. */
export interface NegativeCacheOptions {
  /** 100 000 by default. */
  readonly maxUnknown?: number;
  /** 5000 by default. Milliseconds. */
  readonly unknownTtlMs?: number;
}

/** Remembers for a short time which secrets name no key, so that a client that goes on with a wrong one costs no look-up. */
export class NegativeCache {
  readonly #entries: BoundedCache<{ readonly untilMs: number; readonly version: number }>;
  readonly #ttlMs: number;
  readonly #clock: Clock;

  constructor({ maxUnknown = 100_000, unknownTtlMs = 5000 }: NegativeCacheOptions, clock: Clock) {
    this.#entries = new BoundedCache(maxUnknown);
    this.#ttlMs = unknownTtlMs;
    this.#clock = clock;
  }

  /** `version` is that of the imported secrets, as when the digest was added: since then the secret may have come in. */
  has(digest: string, version: number): boolean {
    const entry = this.#entries.get(digest);
    return entry?.version === version && this.#clock.monotonicMs() < entry.untilMs;
  }

  /** `version` was read before the secret was looked up. */
  add(digest: string, version: number): void {
    this.#entries.set(digest, { untilMs: this.#clock.monotonicMs() + this.#ttlMs, version });
  }
}
