/** Upper bounds of the buckets in milliseconds; a last bucket counts longer calls. */
export const CALL_DURATION_BOUNDS_MS: readonly number[] = [0.5, 1, 2, 5, 10, 25, 50, 100, 200, 500];

/** How long calls took, in plain counters that are cheap to increment. A scrape of the metrics reads them. */
export class CallDurations {
  readonly #buckets = new Array<number>(CALL_DURATION_BOUNDS_MS.length + 1).fill(0);
  #count = 0;
  #sumMs = 0;

  /** Calls so far. */
  get count(): number {
    return this.#count;
  }

  /** Milliseconds of all calls together. */
  get sumMs(): number {
    return this.#sumMs;
  }

  /** Calls per bucket, not cumulated: one more entry than `CALL_DURATION_BOUNDS_MS` has. */
  get buckets(): readonly number[] {
    return this.#buckets;
  }

  add(tookMs: number): void {
    this.#count += 1;
    this.#sumMs += tookMs;
    let index = 0;
    while (index < CALL_DURATION_BOUNDS_MS.length && tookMs > (CALL_DURATION_BOUNDS_MS[index] ?? 0))
      index += 1;
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
  }
}
