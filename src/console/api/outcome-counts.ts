import type { UsageRow } from './read-usage-series.ts';

/** Counts of requests by outcome. Each request is one of `allowed`, `limited` and `failed`. */
export interface Outcomes {
  readonly requests: number;
  readonly allowed: number;
  /** Rejected with 429. */
  readonly limited: number;
  /** Failed for another reason: an error of the client or the backend, or a response that was cut off. */
  readonly failed: number;
  /** How often a limit in shadow mode would have rejected a request that was not limited. */
  readonly shadowLimited: number;
  /** Over `forwarded`; 0 if there are none. */
  readonly averageResponseTimeMs: number;
  /** Requests that were forwarded to the backend. */
  readonly forwarded: number;
}

export const NO_REQUESTS: Outcomes = {
  requests: 0,
  allowed: 0,
  limited: 0,
  failed: 0,
  shadowLimited: 0,
  averageResponseTimeMs: 0,
  forwarded: 0,
};

export function outcomesOf(row: UsageRow): Outcomes {
  return {
    requests: row.requests,
    allowed: row.successful,
    limited: row.rateLimited,
    failed: row.failed - row.rateLimited,
    shadowLimited: row.shadowLimited,
    averageResponseTimeMs: row.averageResponseTimeMs,
    forwarded: row.forwarded,
  };
}

export function sumOf(all: readonly Outcomes[]): Outcomes {
  const total = { ...NO_REQUESTS };
  let responseTimesMs = 0;
  for (const each of all) {
    total.requests += each.requests;
    total.allowed += each.allowed;
    total.limited += each.limited;
    total.failed += each.failed;
    total.shadowLimited += each.shadowLimited;
    total.forwarded += each.forwarded;
    responseTimesMs += each.averageResponseTimeMs * each.forwarded;
  }
  return { ...total, averageResponseTimeMs: total.forwarded === 0 ? 0 : responseTimesMs / total.forwarded };
}
