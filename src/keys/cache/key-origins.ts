import { StoreUnavailable, TollgateError } from '../../errors.ts';
import { BoundedCache } from '../../platform/bounded-cache.ts';
import type { Clock } from '../../platform/clock.ts';
import type { KeyRepository } from '../key-repository.ts';
import { entriesFor } from '../origin-list.ts';
import { BatchLoader } from './batch-loader.ts';

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
/** Most origins that wait for a query, of one client and of all. */
const MAX_WAITING_PER_CLIENT = 200;
const MAX_WAITING = 10_000;

/**
 * The origins of web pages that some key allows, for requests whose key is not known. A newly allowed origin is found with the next
 * request. One that no key allows any more may be found for another second, which is harmless: the request itself is checked against its
 * key.
 *
 * One query runs at a time, for all that wait, and clients take turns. Queries are paced after one for origins of which some are allowed by
 * no key: made-up origins, in any number, cause a hundred small queries a second at most. The callbacks are called exactly once, at once or
 * later, and must not throw.
 */
export class KeyOrigins {
  readonly #clock: Clock;
  /** When each allowed origin was read, by the monotonic clock. */
  readonly #known = new BoundedCache<number>(MAX_KNOWN);
  readonly #reads: BatchLoader<string, boolean>;
  /** Origins that were read before this instant are read again. By the monotonic clock. */
  #expiredAtMs = Number.NEGATIVE_INFINITY;

  constructor({ repository, clock }: KeyOriginsOptions) {
    this.#clock = clock;
    this.#reads = new BatchLoader<string, boolean>({
      maxRunning: 1,
      query: async (origins) => {
        const sought = new Set(origins.flatMap(entriesFor));
        try {
          const entries = new Set(await repository.findOriginEntries([...sought]));
          return origins.map((origin) => entriesFor(origin).some((entry) => entries.has(entry)) || undefined);
        } catch (error) {
          if (error instanceof StoreUnavailable || !(error instanceof Error)) throw error;
          // No origin is at fault, so that asking for each alone would lead to nothing.
          return origins.map(() => error);
        }
      },
      isPacedAfter: (allowed) => allowed.some((each) => each !== true),
    });
  }

  /**
   * Whether some key allows the origin. `client` names the client that sends it. If the store does not respond, an origin that was found
   * before counts as allowed; for any other, gives `StoreUnavailable`. Gives `overloaded` when too many origins wait.
   */
  find(origin: string, client: string, found: OriginFound): void {
    if (entriesFor(origin).length === 0) found(null, false);
    else if (this.#isKnown(origin)) found(null, true);
    else if (this.#reads.waitingOf(client) >= MAX_WAITING_PER_CLIENT || this.#reads.waiting >= MAX_WAITING)
      found(tooMany(), false);
    else this.#read(origin, client, found);
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

  #read(origin: string, client: string, found: OriginFound): void {
    let readAtMs = Number.NEGATIVE_INFINITY;
    const begun = () => {
      readAtMs = this.#clock.monotonicMs();
    };
    this.#reads.read(origin, { group: client, begun }).then(
      (isAllowed = false) => {
        if (isAllowed) this.#known.set(origin, readAtMs);
        else this.#known.delete(origin);
        found(null, isAllowed);
      },
      (error) => {
        if (this.knows(origin)) found(null, true);
        else found(error, false);
      },
    );
  }
}

function tooMany(): TollgateError {
  return new TollgateError('overloaded', 'Too many origins wait to be looked up. Try again shortly.');
}
