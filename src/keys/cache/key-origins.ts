import { TollgateError } from '../../errors.ts';
import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';
import { RoundRobinQueue } from '../../platform/concurrency/round-robin-queue.ts';
import type { KeyRepository } from '../key-repository.ts';
import { entriesFor } from '../origin-list.ts';

export interface KeyOriginsOptions {
  readonly repository: Pick<KeyRepository, 'findOriginEntries'>;
  readonly clock: Clock;
}

/** Responds to a `find`: an error, or whether some key allows the origin. */
export type OriginFound = (error: Error | null, isAllowed: boolean) => void;

/** Origins remembered. */
const MAX_KNOWN = 10_000;
/** How long an origin counts as allowed without another query. Milliseconds. */
const KNOWN_FOR_MS = 1000;
/** Origins in one query. */
const BATCH = 100;
/** Most origins that wait for a query, of one client and of all. */
const MAX_WAITING_PER_CLIENT = 200;
const MAX_WAITING = 10_000;
/** Pause after a query for origins of which some are allowed by no key. Milliseconds. */
const PACE_MS = 10;

interface Waiting {
  readonly origin: string;
  readonly found: OriginFound;
}

/**
 * The origins of web pages that some key allows, for requests whose key is not known. A newly allowed origin is found with the next
 * request. One that no key allows any more may be found for another second, which is harmless: the request itself is checked against its
 * key.
 *
 * One query runs at a time, for all that wait, and clients take turns: made-up origins, in any number, cause a hundred small queries a
 * second at most. The callbacks are called exactly once, at once or later, and must not throw.
 */
export class KeyOrigins {
  readonly #repository: KeyOriginsOptions['repository'];
  readonly #clock: Clock;
  /** When each allowed origin was read, by the monotonic clock. */
  readonly #known = new BoundedCache<number>(MAX_KNOWN);
  readonly #waiting = new RoundRobinQueue<Waiting>();
  #isBusy = false;
  /** Origins that were read before this instant are read again. By the monotonic clock. */
  #expiredAtMs = Number.NEGATIVE_INFINITY;

  constructor({ repository, clock }: KeyOriginsOptions) {
    this.#repository = repository;
    this.#clock = clock;
  }

  /**
   * Whether some key allows the origin. `client` names the client that sends it. If the store does not respond, an origin that was found
   * before counts as allowed; for any other, gives `StoreUnavailable`. Gives `overloaded` when too many origins wait.
   */
  find(origin: string, client: string, found: OriginFound): void {
    if (entriesFor(origin).length === 0) found(null, false);
    else if (this.#isKnown(origin)) found(null, true);
    else if (this.#waiting.sizeOf(client) >= MAX_WAITING_PER_CLIENT || this.#waiting.size >= MAX_WAITING)
      found(tooMany(), false);
    else {
      this.#waiting.push(client, { origin, found });
      this.#startNext();
    }
  }

  /** Whether some key allowed the origin when it was last looked up. */
  knows(origin: string): boolean {
    return this.#known.has(origin);
  }

  /** To be called when a key has changed. */
  expire(): void {
    this.#expiredAtMs = this.#clock.monotonicMs();
  }

  #isKnown(origin: string): boolean {
    const readAtMs = this.#known.get(origin) ?? Number.NEGATIVE_INFINITY;
    return readAtMs > this.#expiredAtMs && this.#clock.monotonicMs() - readAtMs < KNOWN_FOR_MS;
  }

  #startNext(): void {
    if (this.#isBusy || this.#waiting.size === 0) return;
    this.#isBusy = true;
    void this.#run(this.#waiting.take(BATCH));
  }

  async #run(batch: readonly Waiting[]): Promise<void> {
    const readAtMs = this.#clock.monotonicMs();
    let entries: ReadonlySet<string> | undefined;
    let failure: Error | undefined;
    try {
      const sought = new Set(batch.flatMap(({ origin }) => entriesFor(origin)));
      entries = new Set(await this.#repository.findOriginEntries([...sought]));
    } catch (error) {
      failure = error instanceof Error ? error : new Error('Origins could not be read.', { cause: error });
    }
    const pauseMs = entries !== undefined && this.#respond(batch, entries, readAtMs) ? PACE_MS : 0;
    if (failure !== undefined) this.#respondWithKnown(batch, failure);
    setTimeout(() => {
      this.#isBusy = false;
      this.#startNext();
    }, pauseMs);
  }

  /** Responds to the batch. Returns whether no key allows some of its origins. */
  #respond(batch: readonly Waiting[], entries: ReadonlySet<string>, readAtMs: number): boolean {
    let isGuessing = false;
    for (const { origin, found } of batch) {
      const isAllowed = entriesFor(origin).some((entry) => entries.has(entry));
      isGuessing ||= !isAllowed;
      if (isAllowed) this.#known.set(origin, readAtMs);
      else this.#known.delete(origin);
      found(null, isAllowed);
    }
    return isGuessing;
  }

  /** The store does not respond: the batch, and all that wait for the next query, get what is known. */
  #respondWithKnown(batch: readonly Waiting[], failure: Error): void {
    for (const { origin, found } of [...batch, ...this.#waiting.take(Number.POSITIVE_INFINITY)]) {
      if (this.knows(origin)) found(null, true);
      else found(failure, false);
    }
  }
}

function tooMany(): TollgateError {
  return new TollgateError('overloaded', 'Too many origins wait to be looked up. Try again shortly.');
}
