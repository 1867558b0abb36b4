/** A complete response of which nothing has been written. */
interface CompleteResponse {
  /** Writes all of it. */
  writeWhole(): void;
}

/** Most responses that are written together, so that the first of them does not wait for long. */
const MOST = 16;

/**
 * Writes the responses that become complete in one turn of the event loop together, at the end of that turn. Waking a reader costs the
 * kernel more than the rest of the write, and each response that is written alone finds its reader asleep again.
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
