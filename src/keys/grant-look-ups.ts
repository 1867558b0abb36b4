import type { KeyGrant } from './consumer-key.ts';
import type { KeyRepository } from './key-repository.ts';

/** What the look-ups work with, and their bounds. */
export interface GrantLookUpsOptions {
  readonly repository: Pick<KeyRepository, 'findGrantsByLookup'>;
  /** Queries that run together. */
  readonly maxRunning: number;
}

/** Secrets in one query. */
const BATCH = 100;
/** While secrets turn out to name no key, the time from the start of one query to the start of the next. Milliseconds. */
const PACE_MS = 10;

interface Waiting extends PromiseWithResolvers<KeyGrant | undefined> {
  readonly lookups: readonly Buffer[];
}

/**
 * Finds grants by their look-up values, many with one query: what comes while queries run, or while they are paced, goes together with
 * the next one. Queries are paced as long as there are secrets that name no key: whoever tries secrets, in whatever number, causes a
 * hundred small queries a second at most, and a key that is seen for the first time in the midst of it is found all the same. The
 * number of those that wait is the caller's to bound; nobody waits longer than a query takes to fail.
 */
export class GrantLookUps {
  readonly #repository: GrantLookUpsOptions['repository'];
  readonly #maxRunning: number;
  readonly #waiting: Waiting[] = [];
  #running = 0;
  /** The last query that ended had a secret that names no key. */
  #isGuessing = false;
  #isPaused = false;

  constructor({ repository, maxRunning }: GrantLookUpsOptions) {
    this.#repository = repository;
    this.#maxRunning = maxRunning;
  }

  /** The grant of the key that has one of these look-up values, read after this call. Rejects with `StoreUnavailable`. */
  find(lookups: readonly Buffer[]): Promise<KeyGrant | undefined> {
    const waiting: Waiting = { lookups, ...Promise.withResolvers<KeyGrant | undefined>() };
    this.#waiting.push(waiting);
    this.#startNext();
    return waiting.promise;
  }

  #startNext(): void {
    while (this.#waiting.length > 0 && this.#running < this.#maxRunning && !this.#isPaused) {
      if (this.#isGuessing) this.#pause();
      void this.#run(this.#waiting.splice(0, BATCH));
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
      const found = await this.#repository.findGrantsByLookup(batch.flatMap(({ lookups }) => lookups));
      const grants = new Map(found.map(({ lookup, grant }) => [nameOf(lookup), grant]));
      let isGuessing = false;
      for (const { lookups, resolve, reject } of batch) {
        const grant = lookups.map((lookup) => grants.get(nameOf(lookup))).find((one) => one !== undefined);
        isGuessing ||= grant === undefined;
        if (grant instanceof Error) reject(grant);
        else resolve(grant);
      }
      this.#isGuessing = isGuessing;
    } catch (error) {
      // Whoever waited behind a store that does not answer has waited long enough.
      for (const { reject } of [...batch, ...this.#waiting.splice(0)]) reject(error);
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }
}

function nameOf(lookup: Buffer): string {
  return lookup.toString('base64');
}
