/** One authenticated request whose response has closed. */
export interface CompletedRequest {
  readonly keyId: string;
  /** The plan that applied; empty when none did. */
  readonly planId: string;
  /** Path without query; the recorder cuts it to 256 bytes. */
  readonly endpoint: string;
  /** Value of the customer header, at most 128 printable characters, or `anonymous`. */
  readonly customerId: string;
  /** As sent to the client; 0 when the client left before there was one. */
  readonly status: number;
  /** See `isSuccessful`. */
  readonly successful: boolean;
  /** Rejected by a limit of the gateway. */
  readonly rateLimited: boolean;
  /** Windows in shadow mode that would have rejected it. */
  readonly shadowLimited: number;
  /** Milliseconds from the request's start to the response's close; null when it was not forwarded. */
  readonly forwardedMs: number | null;
  /** Bytes of the request's body that went to the backend, and of the response's body that came from it. */
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Whether a request counts as successful: its final status is below 400, and the response was sent completely. */
export function isSuccessful(status: number, isSent: boolean): boolean {
  return isSent && status < 400;
}

/** Records a completed request. Never throws, never waits, writes nothing per request. */
export interface UsageRecorder {
  record(request: CompletedRequest): void;
}

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
