import { TollgateError } from '../../errors.ts';
import type { KeySnapshot } from '../consumer-key.ts';
import type { KeyRepository } from '../key-repository.ts';
import { RoundRobinQueue } from './round-robin-queue.ts';

/** What the look-ups need, and their bounds. */
export interface KeyBatchLoaderOptions {
  readonly repository: Pick<KeyRepository, 'findSnapshotsByLookup'>;
  /** Queries that run together. */
  readonly maxRunning: number;
}

/** Secrets in one query. */
const BATCH = 100;
/** Secrets of one client that may wait. */
const MAX_WAITING_PER_CLIENT = 4000;
/** While secrets turn out to name no key, the time from the start of one query to the start of the next. Milliseconds. */
const PACE_MS = 10;

/** A key, and which of its secrets was looked up. */
export interface LoadedKey {
  readonly snapshot: KeySnapshot;
  readonly secretVersion: number;
}

interface Waiting extends PromiseWithResolvers<LoadedKey | undefined> {
  readonly lookups: readonly Buffer[];
}

/**
 * Batch loader of snapshots by their look-up values: look-ups that arrive while queries run, or are paced, go into the next query.
 * Queries are paced while secrets turn out to name no key: guessed secrets, in any number, cause a hundred small queries a second at
 * most, and new valid keys are still found meanwhile. The caller bounds how many look-ups wait; when a query fails, all that wait
 * fail with it. Clients take turns, so that a client with thousands of made-up secrets does not hold up the new key of another.
 */
export class KeyBatchLoader {
  readonly #repository: KeyBatchLoaderOptions['repository'];
  readonly #maxRunning: number;
  readonly #waiting = new RoundRobinQueue<Waiting>();
  #running = 0;
  /** The last query that ended had a secret that names no key. */
  #isGuessing = false;
  #isPaused = false;

  constructor({ repository, maxRunning }: KeyBatchLoaderOptions) {
    this.#repository = repository;
    this.#maxRunning = maxRunning;
  }

  /**
   * The key that has a secret with one of these look-up values, read after this call. `client` names who presents the secret. Rejects
   * with `StoreUnavailable`, or with `overloaded` when too many secrets of that client wait.
   */
  find(lookups: readonly Buffer[], client: string): Promise<LoadedKey | undefined> {
    if (this.#waiting.sizeOf(client) >= MAX_WAITING_PER_CLIENT) {
      return Promise.reject(
        new TollgateError(
          'overloaded',
          'Too many new keys from this address wait to be looked up. Try again shortly.',
        ),
      );
    }
    const waiting: Waiting = { lookups, ...Promise.withResolvers<LoadedKey | undefined>() };
    this.#waiting.push(client, waiting);
    this.#startNext();
    return waiting.promise;
  }

  #startNext(): void {
    while (this.#waiting.size > 0 && this.#running < this.#maxRunning && !this.#isPaused) {
      if (this.#isGuessing) this.#pause();
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

  async #run(batch: readonly Waiting[]): Promise<void> {
    this.#running += 1;
    try {
      const found = await this.#repository.findSnapshotsByLookup(batch.flatMap(({ lookups }) => lookups));
      const keys = new Map(found.map((key) => [nameOf(key.lookup), key]));
      let isGuessing = false;
      for (const { lookups, resolve, reject } of batch) {
        const key = lookups.map((lookup) => keys.get(nameOf(lookup))).find((one) => one !== undefined);
        isGuessing ||= key === undefined;
        if (key?.snapshot instanceof Error) reject(key.snapshot);
        else resolve(key && { snapshot: key.snapshot, secretVersion: key.secretVersion });
      }
      this.#isGuessing = isGuessing;
    } catch (error) {
      // The store does not respond: all that wait for the next query fail now too.
      for (const { reject } of [...batch, ...this.#waiting.take(Infinity)]) reject(error);
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }
}

function nameOf(lookup: Buffer): string {
  return lookup.toString('base64');
}
