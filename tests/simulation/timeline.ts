interface Planned {
  readonly atMs: number;
  /** Ends what would otherwise be a tie, so that a run is the same each time. */
  readonly order: number;
  readonly happen: () => void;
}

/** What is going to happen, in the order of simulated time. */
export class Timeline {
  nowMs = 0;
  /** A binary heap: the next thing comes first. */
  readonly #planned: Planned[] = [];
  #made = 0;

  after(delayMs: number, happen: () => void): void {
    this.#made += 1;
    const { length } = this.#planned;
    this.#planned.push({ atMs: this.nowMs + delayMs, order: this.#made, happen });
    this.#rise(length);
  }

  /** Lets everything happen until an instant. Milliseconds. */
  runUntil(endMs: number): void {
    for (let next = this.#planned[0]; next !== undefined && next.atMs < endMs; next = this.#planned[0]) {
      this.#removeFirst();
      this.nowMs = next.atMs;
      next.happen();
    }
    this.nowMs = endMs;
  }

  #removeFirst(): void {
    const last = this.#planned.pop();
    if (last === undefined || this.#planned.length === 0) return;
    this.#planned[0] = last;
    this.#sink();
  }

  #rise(from: number): void {
    for (let index = from; index > 0; ) {
      const parent = (index - 1) >> 1;
      if (this.#isFirst(parent, index)) return;
      this.#swap(parent, index);
      index = parent;
    }
  }

  #sink(): void {
    for (let index = 0; ; ) {
      const [left, right] = [2 * index + 1, 2 * index + 2];
      if (left >= this.#planned.length) return;
      const child = right < this.#planned.length && this.#isFirst(right, left) ? right : left;
      if (this.#isFirst(index, child)) return;
      this.#swap(index, child);
      index = child;
    }
  }

  #isFirst(index: number, other: number): boolean {
    const [one, two] = [this.#planned[index], this.#planned[other]];
    if (one === undefined || two === undefined) return one !== undefined;
    return one.atMs < two.atMs || (one.atMs === two.atMs && one.order < two.order);
  }

  #swap(index: number, other: number): void {
    const [one, two] = [this.#planned[index], this.#planned[other]];
    if (one === undefined || two === undefined) return;
    this.#planned[index] = two;
    this.#planned[other] = one;
  }
}
