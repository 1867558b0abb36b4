import type { Clock } from './clock.ts';

/** An item with a deadline. `before` and `after` belong to the queue that it is in. */
export interface Due<T> {
  /** By the monotonic clock, in milliseconds. Changed only by `postpone` while the item is in a queue. */
  dueAtMs: number;
  before: T | undefined;
  after: T | undefined;
}

/**
 * Items by deadline, with a single timer: a timer for each would cost a busy process half a microsecond. The items are linked instead of
 * kept in a `Set`: each time a `Set` rehashes, its old table keeps the items of that moment and a reference to its successor, so that under
 * load nearly every item, and all that it refers to, outlives the young generation.
 */
export class DeadlineQueue<T extends Due<T>> {
  readonly #clock: Clock;
  readonly #onDue: (item: T) => void;
  readonly #beforeLook: () => void;
  #first: T | undefined = undefined;
  #last: T | undefined = undefined;
  #timer: NodeJS.Timeout | undefined = undefined;
  /** When the timer fires; infinite if there is none. */
  #wakesAtMs = Number.POSITIVE_INFINITY;

  /**
   * `onDue` is called with each item whose deadline has passed, after it was removed from the queue. `beforeLook` is called before
   * deadlines are checked, and may postpone them.
   */
  constructor(clock: Clock, onDue: (item: T) => void, beforeLook: () => void = () => {}) {
    this.#clock = clock;
    this.#onDue = onDue;
    this.#beforeLook = beforeLook;
  }

  /** The item must be in no queue. `nowMs` is by the monotonic clock. Nearly free for an item that is due after all others. */
  add(item: T, nowMs: number): void {
    let before = this.#last;
    while (before !== undefined && before.dueAtMs > item.dueAtMs) before = before.before;
    const after = before === undefined ? this.#first : before.after;
    item.before = before;
    item.after = after;
    if (before === undefined) this.#first = item;
    else before.after = item;
    if (after === undefined) this.#last = item;
    else after.before = item;
    if (item.dueAtMs < this.#wakesAtMs) this.#wakeAt(item.dueAtMs, nowMs);
  }

  /** The item must be in this queue. */
  delete(item: T): void {
    const { before, after } = item;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // A removed item must not keep its neighbours alive.
    item.before = undefined;
    item.after = undefined;
  }

  /** Postpones the deadline of every item by `ms` milliseconds, but not beyond `latestMs`. */
  postpone(ms: number, latestMs: number): void {
    for (let item = this.#first; item !== undefined; item = item.after) {
      item.dueAtMs = Math.min(item.dueAtMs + ms, latestMs);
    }
  }

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  #wakeAt(atMs: number, nowMs: number): void {
    clearTimeout(this.#timer);
    this.#wakesAtMs = atMs;
    const delayMs = Math.max(0, Math.ceil(atMs - nowMs));
    // One turn later, so that responses which arrived while the process was busy are read before they time out.
    this.#timer = setTimeout(() => setImmediate(() => this.#look()), delayMs).unref();
  }

  #look(): void {
    this.#wakesAtMs = Number.POSITIVE_INFINITY;
    this.#beforeLook();
    const nowMs = this.#clock.monotonicMs();
    for (let item = this.#first; item !== undefined && item.dueAtMs <= nowMs; item = this.#first) {
      this.delete(item);
      this.#onDue(item);
    }
    const next = this.#first;
    if (next !== undefined && next.dueAtMs < this.#wakesAtMs) this.#wakeAt(next.dueAtMs, nowMs);
  }
}
