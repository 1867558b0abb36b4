/** A response of which nothing has been written. */
interface CompleteResponse {
  /** Writes all of it. */
  writeWhole(): void;
}

/** Responses that are written together at most, so that the first of them does not wait for long. */
const MOST = 16;

/**
 * Writes the responses that become complete in a turn of the event loop one right after the other, at the end of that turn. To wake a
 * reader costs the kernel more than the rest of the write: each response that is written alone finds its reader asleep again.
 */
export class ResponseBatcher {
  #complete: CompleteResponse[] = [];
  readonly #writeAll = (): void => this.#write();

  /** Writes the response at the end of this turn. */
  add(response: CompleteResponse): void {
    this.#complete.push(response);
    if (this.#complete.length === 1) setImmediate(this.#writeAll);
    else if (this.#complete.length === MOST) this.#write();
  }

  #write(): void {
    const complete = this.#complete;
    this.#complete = [];
    for (const response of complete) response.writeWhole();
  }
}
