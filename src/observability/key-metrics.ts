import { OUTCOMES, type Outcome } from './outcomes.ts';
import type { Reading } from './reading.ts';

/** The most keys that are counted at a time. Beyond that, requests of further keys are not counted. */
const MOST_KEYS = 10_000;
/** After this time a request counts half when the busiest keys are chosen. Milliseconds. */
const HALF_LIFE_MS = 60_000;

/** The requests of one key. Changed in place, because this is the hot path. */
interface KeyCounts {
  readonly byOutcome: Float64Array;
  /** Requests, weighted by their age. */
  recent: number;
}

/**
 * Counts the requests of the busiest keys, for operators who want keys as labels. As long as a key is counted, all of its requests are, so
 * that its series only grows. The shown keys change with the traffic.
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

  /** Called when a request of a key has ended. */
  observe(keyId: string, outcome: Outcome): void {
    this.#age();
    const counts = this.#keys.get(keyId) ?? this.#open(keyId);
    if (counts === undefined) return;
    const position = OUTCOMES.indexOf(outcome);
    counts.byOutcome[position] = (counts.byOutcome[position] ?? 0) + 1;
    counts.recent += 1;
  }

  /** The metric for the registry. */
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

  /** Halves `recent` for every half-life that has passed, and drops keys that have had no requests for several of them. */
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
