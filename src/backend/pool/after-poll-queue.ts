/**
 * Passes on each item after one complete poll of all sockets by the event loop: bytes that were in a socket when the item was added
 * have been read by then. This takes two immediates, because one that is set during a poll runs before the next poll. Both are referenced,
 * because the loop would sleep before an unreferenced one. Items that are added together share them.
 */
export class AfterPollQueue<Item> {
  readonly #onPolled: (item: Item) => void;
  /** Items that were added since the last poll began. */
  #arriving: Item[] = [];
  /** Items that were added before the last poll began. */
  #polling: Item[] = [];
  #isScheduled = false;

  constructor(onPolled: (item: Item) => void) {
    this.#onPolled = onPolled;
  }

  add(item: Item): void {
    this.#arriving.push(item);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#step);
  }

  readonly #step = (): void => {
    const polled = this.#polling;
    this.#polling = this.#arriving;
    this.#arriving = [];
    this.#isScheduled = this.#polling.length > 0;
    if (this.#isScheduled) setImmediate(this.#step);
    for (const item of polled) this.#onPolled(item);
  };
}
