/** Requests by outcome. `requests = successful + failed`. */
export interface UsageCounts {
  readonly requests: number;
  readonly successful: number;
  readonly failed: number;
}

export interface EndpointUsage extends UsageCounts {
  readonly endpoint: string;
  /** Mean over forwarded requests in milliseconds, two decimals; 0 when none was forwarded. */
  readonly averageResponseTimeMs: number;
}

export interface CustomerUsage extends UsageCounts {
  readonly customerId: string;
}

/** The total usage of a key, and its last use. */
export interface KeyTotals extends UsageCounts {
  /** Milliseconds since 1970, a whole second; null = never used. */
  readonly lastUsedAtMs: number | null;
}

/** All that is known of a key's use; the lists sum to the totals, most requests first. */
export interface KeyUsage extends KeyTotals {
  readonly endpoints: readonly EndpointUsage[];
  readonly customers: readonly CustomerUsage[];
}

/** Reads the usage of keys: history, waiting batches and live counts together. Rejects with `StoreUnavailable`. */
export interface UsageReader {
  read(keyId: string): Promise<KeyUsage>;
  /** The totals of each of at most some hundred keys. The number of calls to the store grows with their shards, not with the keys. */
  totals(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeyTotals>>;
}
