/**
 * A lower bound of a Redis server's clock, derived from its replies and this process's monotonic clock: the two machines' clocks need
 * not agree. A slow reply gives a weaker bound; a reply that contradicts the bound (the server's clock was set back) replaces it.
 */
export class ServerClock {
  #leastOffsetMs: number | undefined;

  /** False until a reply on this connection brought the server's time. */
  get isKnown(): boolean {
    return this.#leastOffsetMs !== undefined;
  }

  /** To be called when the connection was lost: the next one may lead to another server. */
  forget(): void {
    this.#leastOffsetMs = undefined;
  }

  /** The server's time, in whole milliseconds, was `serverMs` at some instant between `sentAt` and `receivedAt` (monotonic clock). */
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
