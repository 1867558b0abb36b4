import type { Reading } from './metrics.ts';
import { OUTCOMES, type Outcome } from './outcomes.ts';

/** Keys that are counted to find the busiest; others are left out until some of these have no more requests. */
const MOST_KEYS = 10_000;
/** How long a key's requests count in full towards being one of the busiest. Milliseconds. */
const HALF_LIFE_MS = 60_000;

/** One key's requests. Edited in place: this is the hot path. */
interface KeyCounts {
  readonly byOutcome: Float64Array;
  /** Requests, those of earlier minutes worth less and less. */
  recent: number;
}

/**
 * Requests of the busiest keys, for operators who want keys as labels. Of each key all requests are counted while it is kept, so its
 * series only grows; which keys are shown changes with who is busy.
 */
export class KeyMetrics {
  readonly #shown: number;
  readonly #monotonicMs: () => number;
  readonly #keys = new Map<string, KeyCounts>();
  #agedAtMs: number;

  /** `shown` is the number of keys to show. */
  constructor(shown: number, monotonicMs: () => number) {
    this.#shown = shown;
    this.#monotonicMs = monotonicMs;
    this.#agedAtMs = monotonicMs();
  }

  /** A request of a key is over. */
  observe(keyId: string, outcome: Outcome): void {
    this.#age();
    const counts = this.#keys.get(keyId) ?? this.#open(keyId);
    if (counts === undefined) return;
    const position = OUTCOMES.indexOf(outcome);
    counts.byOutcome[position] = (counts.byOutcome[position] ?? 0) + 1;
    counts.recent += 1;
  }

  /** For the registry. */
  reading(): Reading {
    return {
      name: 'tollgate_key_requests_total',
      help: 'Proxied requests of the busiest consumer keys by how they ended (METRICS_PER_KEY).',
      type: 'counter',
      read: () =>
        this.#busiest().flatMap(([keyId, { byOutcome }]) =>
          OUTCOMES.flatMap((outcome, position) => {
            const value = byOutcome[position] ?? 0;
            return value === 0 ? [] : [[{ key_id: keyId, outcome }, value] as const];
          }),
        ),
    };
  }

  #open(keyId: string): KeyCounts | undefined {
    if (this.#keys.size >= MOST_KEYS) return undefined;
    const counts = { byOutcome: new Float64Array(OUTCOMES.length), recent: 0 };
    this.#keys.set(keyId, counts);
    return counts;
  }

  #busiest(): readonly (readonly [keyId: string, counts: KeyCounts])[] {
    this.#age();
    return [...this.#keys].toSorted(([, a], [, b]) => b.recent - a.recent).slice(0, this.#shown);
  }

  /** Halves what is recent for every half-life that passed, and lets go of keys without a request for some of them. */
  #age(): void {
    const halvings = Math.floor((this.#monotonicMs() - this.#agedAtMs) / HALF_LIFE_MS);
    if (halvings === 0) return;
    this.#agedAtMs += halvings * HALF_LIFE_MS;
    for (const [keyId, counts] of this.#keys) {
      counts.recent /= 2 ** halvings;
      if (counts.recent < 1 / 64) this.#keys.delete(keyId);
    }
  }
}
