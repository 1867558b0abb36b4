import { TollgateError } from '../../errors.ts';
import type { ConcurrencyLimit } from '../../platform/concurrency/concurrency-limit.ts';

/** Called when a read ended: an error, or the value; `first` is true for the caller that started the read. */
export type ReadEnded<Value> = (error: Error | null, value: Value | undefined, first: boolean) => void;

/** Reads a value. Calls `begun` when the query begins: the value may lack changes that are made after that. */
export type Read<Value> = (begun: () => void) => Promise<Value | undefined>;

interface SharedRead<Value> {
  readonly read: Read<Value>;
  readonly waiters: ReadEnded<Value>[];
  /** False while the read waits for its turn: until it begins, callers of `joinNext` share it. */
  hasBegun: boolean;
  /** Callers that came too late for this read, and get the next one. */
  readonly late: ReadEnded<Value>[];
}

/**
 * Shares reads by name: at most one runs for a name at a time. `limit` bounds the reads of all names; reads beyond it end with
 * `overloaded`.
 */
export class SingleFlight<Value> {
  readonly #limit: ConcurrencyLimit;
  readonly #reads = new Map<string, SharedRead<Value>>();

  constructor(limit: ConcurrencyLimit) {
    this.#limit = limit;
  }

  /** Waits for the name's read that is under way, else starts one. */
  join(name: string, read: Read<Value>, ended: ReadEnded<Value>): void {
    const current = this.#reads.get(name);
    if (current === undefined) {
      this.#enter(name, read, [ended]);
    } else {
      current.waiters.push(ended);
    }
  }

  /** Waits for a read that begins after this call. All callers that come while a read runs share the read after it. */
  joinNext(name: string, read: Read<Value>, ended: ReadEnded<Value>): void {
    const current = this.#reads.get(name);
    if (current === undefined) {
      this.#enter(name, read, [ended]);
    } else if (current.hasBegun) {
      current.late.push(ended);
    } else {
      current.waiters.push(ended);
    }
  }

  #enter(name: string, read: Read<Value>, waiters: ReadEnded<Value>[]): void {
    const shared: SharedRead<Value> = { read, waiters, hasBegun: false, late: [] };
    this.#reads.set(name, shared);
    if (this.#limit.run((done) => this.#run(name, shared, done))) return;
    this.#reads.delete(name);
    respond(shared, tooManyReads(), undefined);
  }

  #run(name: string, shared: SharedRead<Value>, done: () => void): void {
    const end = (error: Error | null, value: Value | undefined) => {
      this.#reads.delete(name);
      done();
      if (shared.late.length > 0) {
        this.#enter(name, shared.read, shared.late);
      }
      respond(shared, error, value);
    };
    const begun = () => {
      shared.hasBegun = true;
    };
    Promise.try(shared.read, begun).then(
      (value) => end(null, value),
      (error: unknown) =>
        end(error instanceof Error ? error : new Error('A read failed.', { cause: error }), undefined),
    );
  }
}

function respond<Value>({ waiters }: SharedRead<Value>, error: Error | null, value: Value | undefined): void {
  let first = true;
  for (const ended of waiters) {
    ended(error, value, first);
    first = false;
  }
}

function tooManyReads(): TollgateError {
  return new TollgateError(
    'overloaded',
    'Too many requests wait for a key to be looked up. Try again shortly.',
  );
}
