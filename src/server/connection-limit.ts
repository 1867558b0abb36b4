/** Counts the open connections of a port against a maximum. */
export class ConnectionLimit {
  /** Infinite: there is none. */
  readonly most: number;
  /** Connections that are open. */
  open = 0;
  /** Since the start: connections that were closed at once, because there were as many as there may be. */
  rejected = 0;
  readonly #onFull: (isFull: boolean) => void;
  #isFull = false;

  /** `onFull` is called with true when a connection was rejected, and with false once there is room for a tenth again. */
  constructor(most: number, onFull: (isFull: boolean) => void = () => {}) {
    this.most = most;
    this.#onFull = onFull;
  }

  /** Whether one more may be open. Then `close` must be called when it has closed. */
  mayOpen(): boolean {
    if (this.open < this.most) {
      this.open += 1;
      return true;
    }
    this.rejected += 1;
    this.#setFull(true);
    return false;
  }

  close(): void {
    this.open -= 1;
    if (this.#isFull && this.open <= this.most * 0.9) this.#setFull(false);
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull === isFull) return;
    this.#isFull = isFull;
    this.#onFull(isFull);
  }
}
