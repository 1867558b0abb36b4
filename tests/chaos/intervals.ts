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

  /** When the interval began that contains `at` or ended at most `graceMs` before it; undefined when there is none. */
  beginOfLast(at: number, graceMs: number): number | undefined {
    if (this.#openSince !== undefined && this.#openSince <= at) return this.#openSince;
    return this.#closed.findLast(([begun, ended]) => begun <= at && ended >= at - graceMs)?.[0];
  }
}
