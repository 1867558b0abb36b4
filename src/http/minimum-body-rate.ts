/** The minimum rate of a transfer, and the time over which it is measured. */
export interface MinimumRate {
  /** 0 = none. */
  readonly bytesPerSecond: number;
  readonly windowMs: number;
}

/** Default minimum rate of a request's body. */
export const UPLOAD_RATE: MinimumRate = Object.freeze({ bytesPerSecond: 256, windowMs: 10_000 });

/** Default minimum rate at which a client takes a response. The window is longer: progress shows only in steps of the send buffer. */
export const DOWNLOAD_RATE: MinimumRate = Object.freeze({ bytesPerSecond: 256, windowMs: 30_000 });
