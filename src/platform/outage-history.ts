import type { Clock } from './clock.ts';

/** A time in which something did not respond. Milliseconds since 1970. */
export interface Outage {
  /** It responded until then. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** Older ones are forgotten. */
const KEPT = 100;

/** Remembers when something that is called regularly did not respond. */
export class OutageHistory {
  readonly #clock: Clock;
  readonly #silentAfterMs: number;
  #respondedAtMs: number;
  #hasFailed = false;
  #ended: readonly Outage[] = [];

  /** Without any response for `silentAfterMs` milliseconds there is an outage, even if no call failed: one may be waiting. */
  constructor(clock: Clock, silentAfterMs: number) {
    this.#clock = clock;
    this.#silentAfterMs = silentAfterMs;
    this.#respondedAtMs = clock.nowMs();
  }

  /** Oldest first; the last one lasts until now where there is no response now. */
  get outages(): readonly Outage[] {
    const present = this.#present();
    return present === undefined ? this.#ended : [...this.#ended, present];
  }

  /** There was a response to a call that was sent at `sentAtMs`. */
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
