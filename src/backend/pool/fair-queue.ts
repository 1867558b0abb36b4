/** The waiting requests of one fairness key, in order. The keys take turns. */
export class FairLine<Item> {
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
 * The lines that have a waiting item and may have one more connection. They are served in turn: each key gets one connection before
 * any key gets its next.
 */
export class FairQueue<Item, Line extends FairLine<Item>> {
  readonly #busyPerKey: number;
  readonly #ready = new Set<Line>();

  constructor(busyPerKey: number) {
    this.#busyPerKey = busyPerKey;
  }

  /** Whether a waiting item may be served. */
  get hasNext(): boolean {
    return this.#ready.size > 0;
  }

  /** Whether a new request of this line may have a connection without waiting. */
  mayPass(line: Line): boolean {
    return this.#ready.size === 0 && line.waiting === 0 && line.busy < this.#busyPerKey;
  }

  /** To be called after a line or its `busy` has changed. */
  update(line: Line): void {
    if (line.waiting > 0 && line.busy < this.#busyPerKey) this.#ready.add(line);
    else this.#ready.delete(line);
  }

  /** Takes the oldest item of the line whose turn it is, and counts it as busy. The line's next turn comes after all others. */
  next(): { readonly line: Line; readonly item: Item } | undefined {
    const [line] = this.#ready;
    const item = line?.shift();
    if (line === undefined || item === undefined) return undefined;
    this.#ready.delete(line);
    line.busy += 1;
    this.update(line);
    return { line, item };
  }
}
