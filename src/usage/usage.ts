/** One authenticated request whose response has closed. */
export interface CompletedRequest {
  readonly keyId: string;
  /** Path without query; the recorder cuts it to 256 bytes. */
  readonly endpoint: string;
  /** Value of the customer header, at most 128 printable characters, or `anonymous`. */
  readonly customerId: string;
  /** Final status below 400 and fully sent. */
  readonly successful: boolean;
  /** Milliseconds from the request's start to the response's close; null when it was not forwarded. */
  readonly forwardedMs: number | null;
}

/** Takes note of a completed request. Never throws, never waits, writes nothing per request. */
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

/** All that is known of a key's use; the lists sum to the totals, most requests first. */
export interface KeyUsage extends UsageCounts {
  readonly endpoints: readonly EndpointUsage[];
  readonly customers: readonly CustomerUsage[];
}

/** Reads a key's usage: what is stored, what waits in batches, what is live. Rejects with `StoreUnavailable`. */
export interface UsageReader {
  read(keyId: string): Promise<KeyUsage>;
}

/** A key's requests in one hour. */
export interface HourUsage extends UsageCounts {
  /** The hour's first instant, in milliseconds since 1970. */
  readonly startsAtMs: number;
}

/** Reads a key's usage over time. Rejects with `StoreUnavailable`. */
export interface UsageTimeline {
  /** The hours with requests from `sinceMs` (milliseconds since 1970) on, oldest first, as far as they are kept. */
  readHours(keyId: string, sinceMs: number): Promise<readonly HourUsage[]>;
}

/** Forgets a deleted key: its live counts and its history. Late records of it are dropped. Rejects with `StoreUnavailable`. */
export interface UsageEraser {
  erase(keyId: string): Promise<void>;
}
