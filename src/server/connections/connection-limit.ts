/** What becomes of clients that connect: nothing special; idle connections are closed for them; they are rejected. */
export type ConnectionPressure = 'none' | 'evicting' | 'rejecting';

/** The part that is kept free for new connections by closing idle ones, as nginx does. */
const SPARE = 1 / 16;
/** Connections that are accepted before idle ones can be closed for them. */
const MOST_SPARE = 64;

/** Counts the open connections of a port against a maximum. */
export class ConnectionLimit {
  /** Infinite: there is none. */
  readonly most: number;
  /** Connections that are open. */
  open = 0;
  /** Since the start: connections that were closed at once, because there were as many as there may be. */
  rejected = 0;
  /** Since the start: idle connections that were closed for new ones. */
  evicted = 0;
  /** Since the start: connections that were closed because too many pipelined requests waited. */
  flooded = 0;
  readonly #onPressure: (pressure: ConnectionPressure) => void;
  #pressure: ConnectionPressure = 'none';

  /** `onPressure` is called at each change: when the first is evicted or rejected, and once there is room for a tenth again. */
  constructor(most: number, onPressure: (pressure: ConnectionPressure) => void = () => {}) {
    this.most = most;
    this.#onPressure = onPressure;
  }

  /** How many idle connections are to be closed for new ones. At most 0: none. */
  get excess(): number {
    return this.open - this.most + Math.min(MOST_SPARE, Math.ceil(this.most * SPARE));
  }

  /** Whether one more may be open. Then `close` must be called when it has closed. */
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

  /** A new connection takes the place of one that was closed for it, and whose `close` is yet to come. */
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
