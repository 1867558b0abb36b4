import { SeededRandom } from '../../chaos/seeded-random.ts';

const HOUR_MS = 3_600_000;

/** The traffic of a week. */
export interface TrafficOptions {
  readonly seed: number;
  readonly keyIds: readonly string[];
  /** On average. */
  readonly requestsPerHour: number;
}

/** One request of the traffic. */
export interface WeekRequest {
  readonly atMs: number;
  readonly keyId: string;
  readonly endpoint: string;
  readonly customerId: string;
  readonly status: 200 | 429 | 500;
}

/** What was sent, counted by the generator alone. */
export interface Truth {
  readonly byKey: Map<string, number>;
  /** By `<key> <hour since 1970>`: requests, and how many of them had the status 429. */
  readonly byHour: Map<string, { requests: number; rateLimited: number }>;
  requests: number;
}

/** Requests of a week and what they add up to. The same options give the same requests. */
export class WeekTraffic {
  readonly truth: Truth = { byKey: new Map(), byHour: new Map(), requests: 0 };
  readonly #options: TrafficOptions;
  readonly #random: SeededRandom;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  /** The requests of the hour from `fromMs` on, in order: many at noon, few at midnight. */
  ofHour(fromMs: number): readonly WeekRequest[] {
    const hourOfDay = new Date(fromMs).getUTCHours();
    const rhythm = 1 - 0.8 * Math.cos((2 * Math.PI * hourOfDay) / 24);
    const count = Math.round(this.#options.requestsPerHour * rhythm);
    const offsets = Array.from({ length: count }, () => Math.floor(this.#random.fraction() * HOUR_MS));
    return offsets.toSorted((one, other) => one - other).map((offset) => this.#request(fromMs + offset));
  }

  #request(atMs: number): WeekRequest {
    const { keyIds } = this.#options;
    // The key of rank r has a share of ln(1 + 1/r) / ln(keys + 1).
    const rank = Math.floor((keyIds.length + 1) ** this.#random.fraction());
    const keyId = keyIds[Math.min(rank, keyIds.length) - 1] ?? '';
    const roll = this.#random.fraction();
    const request: WeekRequest = {
      ...{ atMs, keyId },
      endpoint: `/v1/resources/${this.#random.between(1, 5)}`,
      customerId: `customer-${this.#random.between(1, 3)}`,
      status: roll < 0.05 ? 429 : roll < 0.06 ? 500 : 200,
    };
    this.#count(request);
    return request;
  }

  #count({ atMs, keyId, status }: WeekRequest): void {
    const { truth } = this;
    truth.requests += 1;
    truth.byKey.set(keyId, (truth.byKey.get(keyId) ?? 0) + 1);
    const name = `${keyId} ${Math.floor(atMs / HOUR_MS)}`;
    const hour = truth.byHour.get(name) ?? { requests: 0, rateLimited: 0 };
    hour.requests += 1;
    if (status === 429) hour.rateLimited += 1;
    truth.byHour.set(name, hour);
  }
}
