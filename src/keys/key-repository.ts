import type { ChangeContext } from '../audit/change-context.ts';
import type { LimitOverrides } from '../limiter/limit-overrides.ts';
import type { RecordVersion } from '../limiter/record-versions.ts';
import type { ConsumerKey, KeySnapshot, SelfServiceAction } from './consumer-key.ts';
import type { StoredSecret } from './secrets/stored-secret.ts';

/** A key to be stored. */
export interface NewConsumerKey extends ConsumerKey, StoredSecret {
  readonly rotation: null;
}

/** All that the detail response needs of one key. */
export interface StoredKey {
  readonly key: ConsumerKey;
  readonly sealedSecret: Buffer | null;
  readonly snapshot: KeySnapshot;
}

/** A key after an edit. */
export interface UpdatedKey {
  readonly key: ConsumerKey;
  /** As in `KeySnapshot`. */
  readonly version: string;
}

/** A snapshot that was found by a look-up value. */
export interface FoundSnapshot {
  readonly lookup: Buffer;
  /** Of the secret that has this look-up value: the key's present or its previous one. */
  readonly secretVersion: number;
  /** The snapshot, or the error with which `find` would reject: one faulty key must not keep the others from being found. */
  readonly snapshot: KeySnapshot | Error;
}

/** A copy of a key whose version differs from the record's. */
export interface OutdatedKey extends RecordVersion {
  /** True if the key no longer exists; false if it, or the plan that applies to it, has another version. */
  readonly isGone: boolean;
}

/** The fields of a key that an edit may change; a missing one stays as it is. */
export interface KeyChanges {
  readonly name?: string;
  readonly enabled?: boolean;
  readonly expiresAtMs?: number | null;
  /** Null: the default plan applies. */
  readonly planId?: string | null;
  readonly externalId?: string | null;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  /** Replaces the tags. */
  readonly tags?: readonly string[];
  /** Tags to append, and tags to remove. */
  readonly addTags?: readonly string[];
  readonly removeTags?: readonly string[];
  /** Replaces all overrides: a limit that is missing here has none any more. */
  readonly overrides?: LimitOverrides;
  /** The `limitId` of an override to remove. */
  readonly removeOverride?: string;
  /** Null: any. */
  readonly allowedIps?: readonly string[] | null;
  readonly allowedOrigins?: readonly string[] | null;
  readonly selfService?: readonly SelfServiceAction[];
}

/** Why a key was not updated. */
export type UpdateFailure = 'key_not_found' | 'plan_not_found' | 'too_many_tags';

/**
 * Where keys and their bindings are kept. A change and its entry in the audit log are one transaction. Every method rejects with
 * `StoreUnavailable` when the store does not respond. Methods that return the snapshot of a key also do so if the key has no plan of its
 * own and the default plan does not exist.
 */
export interface KeyRepository {
  /** False if its plan does not exist; then nothing was written. */
  insert(key: NewConsumerKey, change: ChangeContext): Promise<boolean>;
  /** Those of the keys that exist and have all of these tags. */
  existing(keyIds: readonly string[], onlyTags: readonly string[]): Promise<ReadonlySet<string>>;
  find(keyId: string): Promise<StoredKey | undefined>;
  /**
   * The snapshots of the keys with a secret, present or previous, whose look-up value is one of `lookups`, in any order; none for a value
   * that no secret has.
   */
  findSnapshotsByLookup(lookups: readonly Buffer[]): Promise<readonly FoundSnapshot[]>;
  /** Those of the copies, at most some thousands, whose version differs from the record's. */
  findOutdated(copies: readonly RecordVersion[]): Promise<readonly OutdatedKey[]>;
  /** Those of the entries that some key has in its `allowedOrigins`. */
  findOriginEntries(entries: readonly string[]): Promise<readonly string[]>;
  /** The snapshots of the keys that exist, by id. One query. An error is the one with which `find` would reject for that key. */
  findSnapshotsOrErrors(keyIds: readonly string[]): Promise<ReadonlyMap<string, KeySnapshot | Error>>;
  /** The names of the keys that exist, by id. One query. */
  findNames(keyIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Writes the changes to each of the keys, sets `updatedAtMs` and raises the version, except where the changes have no effect. Resolves with
   * what became of each key. Rejects with `VersionMismatch` if a key is not in the expected state.
   */
  updateAll(
    keyIds: readonly string[],
    changes: KeyChanges,
    change: ChangeContext,
  ): Promise<ReadonlyMap<string, UpdatedKey | UpdateFailure>>;
  /** Whether a plan exists. It may be deleted before `bind` is called, which then resolves with `plan_not_found`. */
  planExists(planId: string): Promise<boolean>;
  /** Binds a plan to a key, sets `updatedAtMs` and raises the version. */
  bind(
    keyId: string,
    planId: string,
    change: ChangeContext,
  ): Promise<KeySnapshot | 'key_not_found' | 'plan_not_found'>;
  /** Resolves with the keys that there were. Rejects with `VersionMismatch` if one is not in the expected state. */
  deleteAll(keyIds: readonly string[], change: ChangeContext): Promise<ReadonlySet<string>>;
}
