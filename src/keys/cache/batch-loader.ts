import { StoreUnavailable } from '../../errors.ts';
import { RoundRobinQueue } from '../../platform/concurrency/round-robin-queue.ts';

/** What is read, and when. */
export interface BatchLoaderOptions<Lookup, Result> {
  /** Most concurrent queries: a flood of lookups must not take all connections to the store. 4 if missing. */
  readonly maxRunning?: number;
  /**
   * Runs one query for at most a hundred lookups. Resolves with their results, in their order: a result, undefined if nothing was found, or
   * an error that concerns one lookup alone.
   */
  readonly query: (lookups: readonly Lookup[]) => Promise<readonly (Result | Error | undefined)[]>;
  /** Whether queries are paced after a query with these results. */
  readonly isPacedAfter: (results: readonly (Result | Error | undefined)[]) => boolean;
}

const MAX_RUNNING = 4;
/** Lookups in one query. */
const BATCH = 100;
/** While queries are paced, the time from the start of one to the start of the next. Milliseconds. */
const PACE_MS = 10;

interface ReadOptions {
  /** Lookups of different groups take turns. */
  readonly group?: string;
  /** Called when the query begins. */
  readonly begun?: () => void;
}

interface Waiting<Lookup, Result> extends PromiseWithResolvers<Result | undefined> {
  readonly lookup: Lookup;
  readonly begun: (() => void) | undefined;
}

/**
 * Batch loader: lookups that arrive while queries run, or are paced, go into the next query. If the store is unavailable, all
 * waiting lookups fail; if it rejects a query, only the lookups at fault do. The caller bounds their number.
 */
export class BatchLoader<Lookup, Result> {
  readonly #options: BatchLoaderOptions<Lookup, Result>;
  readonly #waiting = new RoundRobinQueue<Waiting<Lookup, Result>>();
  #running = 0;
  /** Whether queries are paced after the last query that ended. */
  #isPaced = false;
  #isPaused = false;
  #isStarting = false;

  constructor(options: BatchLoaderOptions<Lookup, Result>) {
    this.#options = options;
  }

  /** Lookups that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Those of a group. */
  waitingOf(group: string): number {
    return this.#waiting.sizeOf(group);
  }

  /** The result of a query that begins after this call. */
  read(lookup: Lookup, { group = '', begun }: ReadOptions = {}): Promise<Result | undefined> {
    const waiting = { lookup, begun, ...Promise.withResolvers<Result | undefined>() };
    this.#waiting.push(group, waiting);
    this.#startSoon();
    return waiting.promise;
  }

  /** A lookup alone starts at once. Where others run, first the requests that have arrived are read, so that their lookups share a query. */
  #startSoon(): void {
    if (this.#running === 0) this.#startNext();
    if (this.#isStarting || this.#waiting.size === 0) return;
    this.#isStarting = true;
    setImmediate(() => {
      this.#isStarting = false;
      this.#startNext();
    });
  }

  #startNext(): void {
    const { maxRunning = MAX_RUNNING } = this.#options;
    while (this.#waiting.size > 0 && this.#running < maxRunning && !this.#isPaused) {
      if (this.#isPaced) this.#pause();
      void this.#run(this.#waiting.take(BATCH));
    }
  }

  #pause(): void {
    this.#isPaused = true;
    setTimeout(() => {
      this.#isPaused = false;
      this.#startNext();
    }, PACE_MS);
  }

  async #run(batch: readonly Waiting<Lookup, Result>[]): Promise<void> {
    this.#running += 1;
    for (const { begun } of batch) begun?.();
    try {
      await this.#query(batch);
    } catch (error) {
      // The store does not respond: all that wait for the next query fail now too.
      for (const { reject } of [...batch, ...this.#waiting.take(Infinity)]) reject(error);
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }

  /** Rejects if the store is unavailable. If it rejects the statement, each half is queried again, down to the lookup that is at fault. */
  async #query(batch: readonly Waiting<Lookup, Result>[]): Promise<void> {
    let results: readonly (Result | Error | undefined)[];
    try {
      results = await this.#options.query(batch.map(({ lookup }) => lookup));
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (batch.length === 1) return batch[0]?.reject(error);
      const middle = Math.ceil(batch.length / 2);
      await this.#query(batch.slice(0, middle));
      return this.#query(batch.slice(middle));
    }
    for (const [index, { resolve, reject }] of batch.entries()) {
      const result = results[index];
      if (result instanceof Error) reject(result);
      else resolve(result);
    }
    this.#isPaced = this.#options.isPacedAfter(results);
  }
}
