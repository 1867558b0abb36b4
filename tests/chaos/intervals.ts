/** When something was the case: a list of intervals, the last of which may still be open. Milliseconds of `performance.now()`. */
export class Intervals {
  readonly #closed: (readonly [number, number])[] = [];
  #openSince: number | undefined;

  begin(): void {
    this.#openSince ??= performance.now();
  }

  end(): void {
    if (this.#openSince === undefined) return;
    this.#closed.push([this.#openSince, performance.now()]);
    this.#openSince = undefined;
  }

  /** Whether it was the case at some time from `from` to `to`. */
  touch(from: number, to: number): boolean {
    if (this.#openSince !== undefined && this.#openSince <= to) return true;
    return this.#closed.some(([begun, ended]) => begun <= to && ended >= from);
  }

  /** It was the case meanwhile, as was found out afterwards. */
  add(from: number, to: number): void {
    this.#closed.push([from, to]);
  }

  /**
   * When the interval began that contains `at` or ended at most `graceMs` before it; undefined when there is none. Intervals with less than
   * the grace between them are one.
   */
  beginOfLast(at: number, graceMs: number): number | undefined {
    const isOpen = this.#openSince !== undefined && this.#openSince <= at;
    let begin = isOpen ? this.#openSince : undefined;
    for (const [begun, ended] of this.#closed.toReversed()) {
      if (begun <= at && ended >= (begin ?? at) - graceMs) begin = begun;
    }
    return begin;
  }
}
