/** The minimum rate of a transfer, and the time over which it is measured. */
export interface MinimumRate {
  /** 0 = none. */
  readonly bytesPerSecond: number;
  readonly windowMs: number;
}

/** Of a request's body, where no setting says otherwise. */
export const UPLOAD_RATE: MinimumRate = Object.freeze({ bytesPerSecond: 256, windowMs: 10_000 });

/** At which a client takes a response. A longer window: what was taken is seen only in steps of what the system keeps for a connection. */
export const DOWNLOAD_RATE: MinimumRate = Object.freeze({ bytesPerSecond: 256, windowMs: 30_000 });
