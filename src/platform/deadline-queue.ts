import type { Clock } from './clock.ts';

/** The interval at which the clock is checked while deadlines run. Milliseconds. */
const LOOK_EVERY_MS = 25;
/** The longest time between two checks that a busy machine explains. Milliseconds. */
const LONGEST_TURN_MS = 2 * LOOK_EVERY_MS;

/**
 * Detects that this process did not run: its host was suspended, its CPU quota was used up, or a turn of its event loop took too long. Code
 * that applies deadlines to others subtracts this time, because they are not to blame for it.
 */
export class PauseDetector {
  readonly #clock: Clock;
  readonly #isNeeded: () => boolean;
  readonly #onPause: (pausedMs: number) => void;
  #timer: NodeJS.Timeout | undefined = undefined;
  #lookedAtMs = 0;

  /** `onPause` gets the milliseconds in which the process did not run. The clock is checked as long as `isNeeded` returns true. */
  constructor(clock: Clock, isNeeded: () => boolean, onPause: (pausedMs: number) => void) {
    this.#clock = clock;
    this.#isNeeded = isNeeded;
    this.#onPause = onPause;
  }

  /** Starts checking the clock. Nearly free if it is already checked. `nowMs` is by the monotonic clock. */
  watch(nowMs: number): void {
    if (this.#timer !== undefined) return;
    this.#lookedAtMs = nowMs;
    this.#timer = setInterval(() => this.#lookAgain(), LOOK_EVERY_MS).unref();
  }

  /** Called before a deadline is applied: a pause may have ended before the timer could run. */
  look(): void {
    if (this.#timer === undefined) return;
    const nowMs = this.#clock.monotonicMs();
    const turnMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    if (turnMs > LONGEST_TURN_MS) this.#onPause(turnMs - LOOK_EVERY_MS);
  }

  #lookAgain(): void {
    this.look();
    if (this.#isNeeded()) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

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
