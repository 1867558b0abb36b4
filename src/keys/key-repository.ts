import type { ConsumerKey, KeyGrant } from './consumer-key.ts';

/** A key to be stored. */
export interface NewConsumerKey extends ConsumerKey {
  /** HMAC of the secret: the only way to find the key by its secret. */
  readonly lookup: Buffer;
  /** The secret, encrypted; null when it is never to be shown again. */
  readonly sealedSecret: Buffer | null;
}

/** All that the detail answer needs of one key. */
export interface StoredKey {
  readonly key: ConsumerKey;
  readonly sealedSecret: Buffer | null;
  readonly grant: KeyGrant;
}

/** A key after an edit. */
export interface UpdatedKey {
  readonly key: ConsumerKey;
  /** As in `KeyGrant`. */
  readonly version: string;
}

/** A grant that was found by a look-up value. */
export interface FoundGrant {
  readonly lookup: Buffer;
  /** The error with which `findGrantById` would reject for this key: what is wrong with one must not keep the others from being found. */
  readonly grant: KeyGrant | Error;
}

/** The fields of a key that an edit may change; a missing one stays as it is. */
export interface KeyChanges {
  readonly name?: string;
  readonly enabled?: boolean;
  readonly expiresAtMs?: number | null;
}

/**
 * Where keys and their bindings are kept. Every method rejects with `StoreUnavailable` when the store does not answer; one that gives the
 * grant of a key without a plan of its own, also where the default plan that is set does not exist.
 */
export interface KeyRepository {
  insert(key: NewConsumerKey): Promise<void>;
  /** At most `limit` keys, newest first, older than the key `beforeId` where one is given. */
  list(limit: number, beforeId?: string): Promise<readonly ConsumerKey[]>;
  exists(keyId: string): Promise<boolean>;
  find(keyId: string): Promise<StoredKey | undefined>;
  /** The grants of the keys whose look-up value is one of `lookups`, in any order; none for a value that no key has. */
  findGrantsByLookup(lookups: readonly Buffer[]): Promise<readonly FoundGrant[]>;
  findGrantById(keyId: string): Promise<KeyGrant | undefined>;
  /** Writes the changes, sets `updatedAtMs` and raises the version. Undefined when there is no such key. */
  update(keyId: string, changes: KeyChanges, updatedAtMs: number): Promise<UpdatedKey | undefined>;
  /** Whether a plan can be bound; it may be gone when `bind` comes, which then says so. */
  planExists(planId: string): Promise<boolean>;
  /** Binds a plan to a key, sets `updatedAtMs` and raises the version. */
  bind(
    keyId: string,
    planId: string,
    updatedAtMs: number,
  ): Promise<KeyGrant | 'key_not_found' | 'plan_not_found'>;
  /** False when there was no such key. */
  delete(keyId: string): Promise<boolean>;
}
