import { TollgateError } from '../../errors.ts';

/** Called when a read ended: an error, or the value; `first` is true for the caller that started the read. */
export type ReadEnded<Value> = (error: Error | null, value: Value | undefined, first: boolean) => void;

/** Reads a value. Calls `begun` when the query begins, if the value must not lack changes that were made before a caller joined. */
export type Read<Value> = (begun: () => void) => Promise<Value | undefined>;

interface SharedRead<Value> {
  readonly read: Read<Value>;
  readonly waiters: ReadEnded<Value>[];
  hasBegun: boolean;
  /** Callers that came after it had begun, and get the next one. */
  readonly late: ReadEnded<Value>[];
}

/** Shares reads by name: at most one runs for a name at a time, and `mostReads` for all names; reads beyond it end with `overloaded`. */
export class SingleFlight<Value> {
  readonly #mostReads: number;
  readonly #reads = new Map<string, SharedRead<Value>>();

  constructor(mostReads: number) {
    this.#mostReads = mostReads;
  }

  /** Waits for the name's read, else starts one. All callers that come once a read has called `begun` share the read after it. */
  join(name: string, read: Read<Value>, ended: ReadEnded<Value>): void {
    const current = this.#reads.get(name);
    if (current === undefined) this.#enter(name, read, [ended]);
    else (current.hasBegun ? current.late : current.waiters).push(ended);
  }

  #enter(name: string, read: Read<Value>, waiters: ReadEnded<Value>[]): void {
    const shared: SharedRead<Value> = { read, waiters, hasBegun: false, late: [] };
    if (this.#reads.size >= this.#mostReads) {
      respond(shared, tooManyReads(), undefined);
      return;
    }
    this.#reads.set(name, shared);
    const end = (error: Error | null, value: Value | undefined) => {
      this.#reads.delete(name);
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
