import { OUTCOMES, type Outcome } from './outcomes.ts';
import type { Reading } from './reading.ts';

/** The most keys that are counted at a time. Beyond that, those with the fewest recent requests are forgotten. */
const MOST_KEYS = 10_000;
/** How many are forgotten at once, so that they are seldom sorted. */
const FORGOTTEN_KEYS = MOST_KEYS / 10;
/** After this time a request counts half when the busiest keys are chosen. Milliseconds. */
const HALF_LIFE_MS = 60_000;

/** The metric of the busiest keys. */
export const KEY_REQUESTS = 'tollgate_key_requests_total';

/** Requests of keys, each by outcome in the order of `OUTCOMES`, in the form that is sent between processes. */
export type KeyCounts = readonly (readonly [keyId: string, byOutcome: readonly number[]])[];

/** The requests of one key. Changed in place, because this is the hot path. */
interface CountedKey {
  readonly byOutcome: Float64Array;
  /** Requests, weighted by their age. */
  recent: number;
}

/**
 * Counts the requests of the busiest keys, for operators who want keys as labels. As long as a key is counted, all of its requests are, so
 * that its series only grows. The shown keys change with the traffic. Workers hand their counts over: only the process that adds them up
 * knows which keys are the busiest of all.
 */
export class KeyMetrics {
  readonly #shown: number;
  readonly #monotonicMs: () => number;
  readonly #keys = new Map<string, CountedKey>();
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
    addTo(this.#keys.get(keyId) ?? this.#open(keyId), OUTCOMES.indexOf(outcome), 1);
  }

  /** Hands over what was counted since the last call, and forgets it. */
  take(): KeyCounts {
    const taken = [...this.#keys].map(([keyId, { byOutcome }]) => [keyId, [...byOutcome]] as const);
    this.#keys.clear();
    return taken;
  }

  /** Adds what another process has handed over. */
  add(taken: KeyCounts): void {
    this.#age();
    for (const [keyId, byOutcome] of taken) {
      const counts = this.#keys.get(keyId) ?? this.#open(keyId);
      for (const [position, requests] of byOutcome.entries()) addTo(counts, position, requests);
    }
  }

  /** The metric for the registry. */
  reading(): Reading {
    return {
      name: KEY_REQUESTS,
      help: 'Decided requests of the busiest consumer keys by how they ended (METRICS_PER_KEY).',
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

  #open(keyId: string): CountedKey {
    if (this.#keys.size >= MOST_KEYS) this.#forgetLeastBusy();
    const counts = { byOutcome: new Float64Array(OUTCOMES.length), recent: 0 };
    this.#keys.set(keyId, counts);
    return counts;
  }

  /** Makes room for new keys, of which one may become the busiest. Of keys that are equally busy, the oldest are forgotten. */
  #forgetLeastBusy(): void {
    const byRecent = [...this.#keys].toSorted(([, a], [, b]) => a.recent - b.recent);
    for (const [keyId] of byRecent.slice(0, FORGOTTEN_KEYS)) this.#keys.delete(keyId);
  }

  #busiest(): readonly (readonly [keyId: string, counts: CountedKey])[] {
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

function addTo(counts: CountedKey, position: number, requests: number): void {
  counts.byOutcome[position] = (counts.byOutcome[position] ?? 0) + requests;
  counts.recent += requests;
}
