/** The waiting requests of one fairness key, in order. The keys take turns. */
export class KeyQueue<Item> {
  /** Connections that requests of this key have. */
  busy = 0;
  /** Places that requests of this key have: reserved, waiting and busy ones. */
  taken = 0;
  readonly key: string;
  #waiting: Set<Item> | undefined;

  constructor(key: string) {
    this.key = key;
  }

  get waiting(): number {
    return this.#waiting?.size ?? 0;
  }

  push(item: Item): void {
    this.#waiting ??= new Set();
    this.#waiting.add(item);
  }

  /** Puts an item in front of all others. */
  unshift(item: Item): void {
    this.#waiting = new Set([item, ...(this.#waiting ?? [])]);
  }

  shift(): Item | undefined {
    const [first] = this.#waiting ?? [];
    if (first !== undefined) this.#waiting?.delete(first);
    return first;
  }

  delete(item: Item): boolean {
    return this.#waiting?.delete(item) === true;
  }
}

/**
 * The queues of keys with a waiting item that may have one more connection. They are served in turn: each key gets one connection before any
 * key gets its next.
 */
export class FairQueue<Item, Queue extends KeyQueue<Item>> {
  readonly #busyPerKey: number;
  readonly #ready = new Set<Queue>();

  constructor(busyPerKey: number) {
    this.#busyPerKey = busyPerKey;
  }

  /** Whether a waiting item may be served. */
  get hasNext(): boolean {
    return this.#ready.size > 0;
  }

  /** Whether a new request of this key may have a connection without waiting. */
  mayPass(keyQueue: Queue): boolean {
    return this.#ready.size === 0 && keyQueue.waiting === 0 && keyQueue.busy < this.#busyPerKey;
  }

  /** To be called after the queue of a key or its `busy` has changed. */
  update(keyQueue: Queue): void {
    if (keyQueue.waiting > 0 && keyQueue.busy < this.#busyPerKey) this.#ready.add(keyQueue);
    else this.#ready.delete(keyQueue);
  }

  /** Takes the oldest item of the key whose turn it is, and counts it as busy. Its next turn comes after all others. */
  next(): { readonly keyQueue: Queue; readonly item: Item } | undefined {
    const [keyQueue] = this.#ready;
    const item = keyQueue?.shift();
    if (keyQueue === undefined || item === undefined) return undefined;
    this.#ready.delete(keyQueue);
    keyQueue.busy += 1;
    this.update(keyQueue);
    return { keyQueue, item };
  }
}
