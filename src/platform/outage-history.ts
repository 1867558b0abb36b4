import type { Clock } from './clock.ts';

/** A period in which a service did not respond. Milliseconds since 1970. */
export interface Outage {
  /** When the last call before the outage that got a response was sent. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** The most outages that are kept; older ones are dropped. */
const KEPT = 100;

/** An outage by the monotonic clock. */
interface MonotonicOutage {
  readonly from: number;
  readonly to: number;
}

/** Records when a service that is called regularly did not respond. A jump of the wall clock makes no outage, and none longer. */
export class OutageHistory {
  readonly #clock: Clock;
  readonly #silentAfterMs: number;
  /** By the monotonic clock. */
  #respondedAt: number;
  #hasFailed = false;
  #ended: readonly MonotonicOutage[] = [];

  /** An outage begins without any response for `silentAfterMs`, even if no call has failed: one may still be waiting. */
  constructor(clock: Clock, silentAfterMs: number) {
    this.#clock = clock;
    this.#silentAfterMs = silentAfterMs;
    this.#respondedAt = clock.monotonicMs();
  }

  /** Oldest first. If there is an outage now, it is the last one and ends now. */
  get outages(): readonly Outage[] {
    const startMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    return this.#monotonicOutages().map(({ from, to }) => ({
      fromMs: Math.round(startMs + from),
      toMs: Math.round(startMs + to),
    }));
  }

  /** Called with the time by the monotonic clock at which a call was sent, when its response has come. */
  noteResponse(sentAt: number): void {
    this.#ended = this.#monotonicOutages().slice(-KEPT);
    this.#hasFailed = false;
    this.#respondedAt = sentAt;
  }

  noteFailure(): void {
    this.#hasFailed = true;
  }

  /** In the same order as `outages`. */
  #monotonicOutages(): readonly MonotonicOutage[] {
    const now = this.#clock.monotonicMs();
    const isOut = this.#hasFailed || now - this.#respondedAt > this.#silentAfterMs;
    return isOut ? [...this.#ended, { from: this.#respondedAt, to: now }] : this.#ended;
  }
}
