/** What can be queued, in one queue at a time. The links are the queue's own. */
export interface Queued<T> {
  before: T | undefined;
  after: T | undefined;
}

/**
 * Items in the order in which they were added, any of which can be taken out at once. A `Set` would do the same, but each time its table is
 * laid anew the old one keeps the items of that moment and a reference to its successor, so that under load nearly every item, and all
 * that it refers to, outlives the young generation.
 */
export class CallQueue<T extends Queued<T>> {
  #first: T | undefined = undefined;
  #last: T | undefined = undefined;

  /** The item that was added before all others that are left. */
  get first(): T | undefined {
    return this.#first;
  }

  add(item: T): void {
    item.before = this.#last;
    if (this.#last === undefined) this.#first = item;
    else this.#last.after = item;
    this.#last = item;
  }

  /** The item must be in this queue. */
  delete(item: T): void {
    const { before, after } = item;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // An item that is gone must not keep its neighbours alive.
    item.before = undefined;
    item.after = undefined;
  }
}
