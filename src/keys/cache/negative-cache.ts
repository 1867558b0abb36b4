import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';

/** Unknown secrets remembered; the least recently used one is forgotten first. */
const MAX_UNKNOWN = 100_000;
/** How long one is remembered. Milliseconds. */
const TTL_MS = 5000;

/** Remembers for a short time which secrets name no key, so that a client that repeats a wrong one costs no look-up. */
export class NegativeCache {
  readonly #entries = new BoundedCache<{ readonly untilMs: number; readonly version: number }>(MAX_UNKNOWN);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Whether the secret was found unknown a few seconds ago. `version` is that of the imported secrets now: if it has changed since `add`,
   * the secret may have been imported.
   */
  has(digest: string, version: number): boolean {
    const entry = this.#entries.get(digest);
    return entry?.version === version && this.#clock.monotonicMs() < entry.untilMs;
  }

  /** `version` was read before the secret was looked up. */
  add(digest: string, version: number): void {
    this.#entries.set(digest, { untilMs: this.#clock.monotonicMs() + TTL_MS, version });
  }
}
