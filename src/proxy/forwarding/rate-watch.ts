import { DOWNLOAD_RATE, type MinimumRate, UPLOAD_RATE } from '../../http/minimum-body-rate.ts';
import type { DeadlineQueue, Due } from '../../platform/deadline-queue.ts';

/** A body on its way, in one direction. */
export interface Transfer {
  /** Bytes that have passed so far. */
  readonly bytes: number;
  /** When the backend last held the transfer back, by the monotonic clock; infinite while it does. Milliseconds. */
  readonly excusedUntilMs: number;
}

/** How fast bodies must pass. */
export interface BodyRateOptions {
  /** Minimum rate of a client's body; 0 = none. */
  readonly requestBodyMinBytesPerSecond: number;
  /** Minimum rate at which a client takes a response; 0 = none. */
  readonly responseBodyMinBytesPerSecond: number;
  /** Window over which the rates are measured; 10 000 for requests and 30 000 for responses by default. Milliseconds. */
  readonly rateWindowMs?: number;
}

/** The minimum rates of both directions. */
export function minimumBodyRates(
  options: BodyRateOptions,
): Record<'uploadRate' | 'downloadRate', MinimumRate> {
  const { requestBodyMinBytesPerSecond, responseBodyMinBytesPerSecond, rateWindowMs } = options;
  const window = rateWindowMs !== undefined && { windowMs: rateWindowMs };
  return {
    uploadRate: { ...UPLOAD_RATE, bytesPerSecond: requestBodyMinBytesPerSecond, ...window },
    downloadRate: { ...DOWNLOAD_RATE, bytesPerSecond: responseBodyMinBytesPerSecond, ...window },
  };
}

/**
 * Reports a transfer that falls below its minimum rate. Each window is judged separately, so that a fast start is no credit for later. A
 * window in which the backend held the transfer back is not judged.
 */
export class RateWatch implements Due<RateWatch> {
  dueAtMs = 0;
  before: RateWatch | undefined = undefined;
  after: RateWatch | undefined = undefined;
  readonly #transfer: Transfer;
  readonly #rate: MinimumRate;
  readonly #onTooSlow: () => void;
  #startedAtMs = 0;
  #startBytes = 0;
  #isWatching = false;

  constructor(transfer: Transfer, rate: MinimumRate, onTooSlow: () => void) {
    this.#transfer = transfer;
    this.#rate = rate;
    this.#onTooSlow = onTooSlow;
  }

  /** Begins a window. Does nothing while one is open, or without a minimum rate. */
  start(queue: DeadlineQueue<RateWatch>, nowMs: number): void {
    if (this.#isWatching || this.#rate.bytesPerSecond === 0) return;
    this.#isWatching = true;
    this.#startedAtMs = nowMs;
    this.#startBytes = this.#transfer.bytes;
    this.dueAtMs = nowMs + this.#rate.windowMs;
    queue.add(this, nowMs);
  }

  stop(queue: DeadlineQueue<RateWatch>): void {
    if (this.#isWatching) queue.delete(this);
    this.#isWatching = false;
  }

  /** To be called when a window is over and the queue has removed the watch. Judges the window, and begins the next one. */
  judge(queue: DeadlineQueue<RateWatch>, nowMs: number): void {
    this.#isWatching = false;
    const seconds = (nowMs - this.#startedAtMs) / 1000;
    const isExcused = this.#transfer.excusedUntilMs > this.#startedAtMs;
    const passed = this.#transfer.bytes - this.#startBytes;
    if (!isExcused && passed < this.#rate.bytesPerSecond * seconds) this.#onTooSlow();
    else this.start(queue, nowMs);
  }
}
