import { TollgateError } from '../../errors.ts';
import type { KeySnapshot } from '../consumer-key.ts';
import type { FoundSnapshot, KeyRepository } from '../key-repository.ts';
import { BatchLoader } from './batch-loader.ts';

/** Most secrets of one client that wait for a query. */
const MAX_WAITING_PER_CLIENT = 4000;

/** A key, and which of its secrets was looked up. */
export interface LoadedKey {
  readonly snapshot: KeySnapshot;
  readonly secretVersion: number;
}

/**
 * Batch loader of key snapshots by look-up value. Queries are paced after one that did not find all keys: guessed secrets, in any number,
 * cause at most a hundred small queries a second, and new valid keys are still found meanwhile. The caller bounds how many look-ups wait.
 * Clients take turns, so that a client with thousands of made-up secrets does not hold up the new key of another.
 */
export class KeyBatchLoader {
  readonly #reads: BatchLoader<readonly Buffer[], LoadedKey>;

  constructor(repository: Pick<KeyRepository, 'findSnapshotsByLookup'>) {
    this.#reads = new BatchLoader({
      query: async (batch) => {
        const found = await repository.findSnapshotsByLookup(batch.flat());
        const keys = new Map(found.map((key) => [nameOf(key.lookup), key]));
        return batch.map((lookups) =>
          loadedKey(lookups.map((lookup) => keys.get(nameOf(lookup))).find((key) => key !== undefined)),
        );
      },
      isPacedAfter: (keys) => keys.includes(undefined),
    });
  }

  /**
   * The key that has a secret with one of these look-up values, read after this call. `client` names the client that presents the secret.
   * Rejects with `StoreUnavailable`, or with `overloaded` when too many secrets of that client wait.
   */
  find(lookups: readonly Buffer[], client: string): Promise<LoadedKey | undefined> {
    if (this.#reads.waitingOf(client) < MAX_WAITING_PER_CLIENT)
      return this.#reads.read(lookups, { group: client });
    return Promise.reject(
      new TollgateError(
        'overloaded',
        'Too many new keys from this address wait to be looked up. Try again shortly.',
      ),
    );
  }
}

function loadedKey(found: FoundSnapshot | undefined): LoadedKey | Error | undefined {
  if (found === undefined) return undefined;
  const { snapshot, secretVersion } = found;
  return snapshot instanceof Error ? snapshot : { snapshot, secretVersion };
}

function nameOf(lookup: Buffer): string {
  return lookup.toString('base64');
}
