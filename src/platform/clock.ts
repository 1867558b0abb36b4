/** The source of time. Only `platform/` reads the system's clock, so that tests can move it. */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970-01-01T00:00:00Z. May jump: use it for timestamps, not for durations. */
  nowMs(): number;
  /** Milliseconds since an arbitrary start. Never decreases: use it for durations and deadlines. */
  monotonicMs(): number;
}

/** The machine's clock. */
export const systemClock: Clock = Object.freeze({
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
});
