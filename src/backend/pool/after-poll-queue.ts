/**
 * Passes on each item after the event loop has polled all sockets once, from beginning to end, since the item came: what lay in a
 * socket at that time has been read by then. Takes two immediates, because one that is set while the loop polls runs before it polls
 * again, and both are referenced, because the loop would sleep before an unreferenced one. Items that come together share them.
 */
export class AfterPollQueue<Item> {
  readonly #onPolled: (item: Item) => void;
  /** Items that came since the last poll began. */
  #arriving: Item[] = [];
  /** Items that came before it. */
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
