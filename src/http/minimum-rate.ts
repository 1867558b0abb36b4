/** The minimum rate of a transfer, and the time over which it is measured. */
export interface MinimumRate {
  /** 0 = none. */
  readonly bytesPerSecond: number;
  readonly windowMs: number;
}

/** Of a request's body, where no setting says otherwise. */
export const UPLOAD_RATE: MinimumRate = Object.freeze({ bytesPerSecond: 256, windowMs: 10_000 });
