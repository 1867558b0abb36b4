/** What a new client causes: nothing special, the closing of idle connections, or its rejection. */
export type ConnectionPressure = 'none' | 'evicting' | 'rejecting';

/** The part of the limit that is kept free for new connections by closing idle ones, as nginx does. */
const SPARE = 1 / 16;
/** Upper bound of that part: how many may be accepted before idle connections can be closed for them. */
const MOST_SPARE = 64;

/** Counts the open connections of a port against a maximum. */
export class ConnectionLimit {
  /** Most open connections; infinite = no limit. */
  readonly most: number;
  /** Connections that are open. */
  open = 0;
  /** Since the start: connections that were closed at once, because the limit was reached. */
  rejected = 0;
  /** Since the start: idle connections that were closed for new ones. */
  evicted = 0;
  /** Since the start: connections that were closed because too many pipelined requests waited. */
  flooded = 0;
  readonly #onPressure: (pressure: ConnectionPressure) => void;
  #pressure: ConnectionPressure = 'none';

  /** `onPressure` is called at each change: at the first eviction or rejection, and once a tenth of the limit is free again. */
  constructor(most: number, onPressure: (pressure: ConnectionPressure) => void = () => {}) {
    this.most = most;
    this.#onPressure = onPressure;
  }

  /** How many idle connections are to be closed for new ones. 0 or less = none. */
  get excess(): number {
    return this.open - this.most + Math.min(MOST_SPARE, Math.ceil(this.most * SPARE));
  }

  /** Counts a new connection, or rejects it and returns false. `close` must be called when a counted connection has closed. */
  mayOpen(): boolean {
    if (this.open < this.most) {
      this.open += 1;
      return true;
    }
    this.rejected += 1;
    this.#setPressure('rejecting');
    return false;
  }

  /** Whether `mayOpen` rejects. */
  get isFull(): boolean {
    return this.open >= this.most;
  }

  /** Counts a new connection in place of one that was closed for it; the `close` of that one is still to come. */
  replace(): void {
    this.open += 1;
    this.noteEviction();
  }

  close(): void {
    this.open -= 1;
    if (this.open <= this.most * 0.9) this.#setPressure('none');
  }

  noteEviction(): void {
    this.evicted += 1;
    if (this.#pressure === 'none') this.#setPressure('evicting');
  }

  #setPressure(pressure: ConnectionPressure): void {
    if (this.#pressure === pressure) return;
    this.#pressure = pressure;
    this.#onPressure(pressure);
  }
}
