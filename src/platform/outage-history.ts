import type { Clock } from './clock.ts';

/** A period in which a service did not respond. Milliseconds since 1970. */
export interface Outage {
  /** When the last call before the outage that got a response was sent. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** The most outages that are kept; older ones are dropped. */
const KEPT = 100;

/** Records when a service that is called regularly did not respond. */
export class OutageHistory {
  readonly #clock: Clock;
  readonly #silentAfterMs: number;
  #respondedAtMs: number;
  #hasFailed = false;
  #ended: readonly Outage[] = [];

  /** An outage begins without any response for `silentAfterMs`, even if no call has failed: one may still be waiting. */
  constructor(clock: Clock, silentAfterMs: number) {
    this.#clock = clock;
    this.#silentAfterMs = silentAfterMs;
    this.#respondedAtMs = clock.nowMs();
  }

  /** Oldest first. If there is an outage now, it is the last one and ends now. */
  get outages(): readonly Outage[] {
    const present = this.#present();
    return present === undefined ? this.#ended : [...this.#ended, present];
  }

  /** Called with the time at which a call was sent, when its response has come. */
  noteResponse(sentAtMs: number): void {
    this.#ended = this.outages.slice(-KEPT);
    this.#hasFailed = false;
    this.#respondedAtMs = sentAtMs;
  }

  noteFailure(): void {
    this.#hasFailed = true;
  }

  #present(): Outage | undefined {
    const nowMs = this.#clock.nowMs();
    const isOut = this.#hasFailed || nowMs - this.#respondedAtMs > this.#silentAfterMs;
    return isOut ? { fromMs: this.#respondedAtMs, toMs: nowMs } : undefined;
  }
}
