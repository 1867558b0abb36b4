/**
 * What a Redis server's clock shows at the least, told from its answers by our monotonic clock: so it does not matter how far the two
 * machines' clocks are apart. An answer that took long says less; one that contradicts what was known (the server's clock was set
 * back) replaces it.
 */
export class ServerClock {
  #leastOffsetMs: number | undefined;

  /** False until the server has told its time on this connection. */
  get isKnown(): boolean {
    return this.#leastOffsetMs !== undefined;
  }

  /** After a connection was lost another server may answer. */
  forget(): void {
    this.#leastOffsetMs = undefined;
  }

  /** The server's time was `serverMs`, milliseconds cut off, at some instant between the two of our monotonic clock. */
  learn(serverMs: number, sentAt: number, receivedAt: number): void {
    const least = serverMs - receivedAt;
    const most = serverMs + 1 - sentAt;
    const known = this.#leastOffsetMs;
    if (known === undefined || least > known || most < known) this.#leastOffsetMs = least;
  }

  /** The least that the server's clock shows at an instant of our monotonic clock. Milliseconds since 1970; undefined = not known. */
  atLeast(instant: number): number | undefined {
    return this.#leastOffsetMs === undefined ? undefined : this.#leastOffsetMs + instant;
  }
}
