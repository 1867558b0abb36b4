import type { ChangeContext } from '../../audit/change-context.ts';
import type { ConsumerKey, KeyRotation } from '../consumer-key.ts';
import type { NewConsumerKey, UpdatedKey } from '../key-repository.ts';
import type { SecretMatch, StoredSecret } from './stored-secret.ts';

/** A new secret for a key. Instants are milliseconds since 1970. */
export interface SecretReplacement {
  readonly secret: StoredSecret;
  /** For a secret from outside; undefined for one that the gateway has made. */
  readonly match?: SecretMatch | undefined;
  /** The version of the secret that is to be replaced; undefined = whichever is the present one. */
  readonly replaces?: number | undefined;
  /** Until when the previous secret is valid. If that is not after the change, it is rejected at once. */
  readonly previousValidUntilMs: number;
  /** The key's new expiry; undefined = as it was. */
  readonly expiresAtMs?: number | null | undefined;
}

/** A key with a secret from outside, to be stored. */
export interface ImportedKey {
  readonly key: NewConsumerKey;
  readonly match: SecretMatch;
}

/** Why a key was not stored: its secret is taken (as `isTaken` says, or by an earlier key of the import), or its plan does not exist. */
export type ImportFailure = 'secret_taken' | 'plan_not_found';

/** How keys are imported. */
export interface ImportOptions {
  /** If secrets are taken, `fail` stores no key at all, and `skip` stores all others. */
  readonly onConflict: 'fail' | 'skip';
  readonly action: 'key.create' | 'key.import';
}

/** A key that has a secret, and which of its secrets that is. */
export interface FoundKey {
  readonly key: ConsumerKey;
  readonly isPrevious: boolean;
}

/** Whether there are secrets besides those that the gateway makes. */
export interface ImportedSecrets {
  /** Grows when secrets are imported: a secret that was unknown at one version may be known at a later one. */
  readonly version: number;
  /** Some were given in plain text. They have no checksum. */
  readonly given: boolean;
  /** Some are known only by their digests, and must be looked up by them. */
  readonly hashed: boolean;
}

/** A use of the secret that a key had before. */
export interface PreviousSecretUse {
  readonly keyId: string;
  /** As in `KeySnapshot`. */
  readonly secretVersion: number;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/** Which of its two secrets a key keeps. */
export type KeptSecret = 'new' | 'previous';

/** Where the secrets of keys are kept. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface SecretRepository {
  /** The key's rotation, also one that is over; null = none. */
  findRotation(keyId: string, onlyTags: readonly string[]): Promise<KeyRotation | null | 'key_not_found'>;
  /**
   * Gives the key another secret, sets `updatedAtMs` and raises the version. `secret_taken`: as in `import`. `rotation_in_progress`: the
   * key's previous secret is still valid, and a key has at most two. `secret_replaced`: the one that is to be replaced is not the present one.
   */
  rotate(
    keyId: string,
    replacement: SecretReplacement,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'rotation_in_progress' | 'secret_taken' | 'secret_replaced'>;
  /** Leaves the key one of its two secrets, sets `updatedAtMs` and raises the version. */
  endRotation(
    keyId: string,
    keep: KeptSecret,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'no_rotation'>;
  /**
   * Stores keys with secrets from outside, except those whose secret is taken or equal to an earlier one of `keys`: each secret belongs to
   * one key, whichever replicas store it. Resolves with a result for each key: why it was not stored, undefined when it was. If a plan does
   * not exist, nothing is stored. If `onConflict` `fail` stores nothing, only the keys that caused it have a failure.
   */
  import(
    keys: readonly ImportedKey[],
    options: ImportOptions,
    change: ChangeContext,
  ): Promise<readonly (ImportFailure | undefined)[]>;
  /**
   * Whether the secret is a key's present or previous one, or a credential of another kind. A previous secret counts until the rotation is
   * ended or the next one replaces it, even if it has expired.
   */
  isTaken(match: SecretMatch): Promise<boolean>;
  /** How many of the secrets are taken, as `isTaken` says, but not by a key that has all of the tags. */
  countOutOfSight(matches: readonly SecretMatch[], onlyTags: readonly string[]): Promise<number>;
  /** The key that has the secret, as its present or previous one. The previous one may have expired, as `rotation` says. */
  findBySecret(match: SecretMatch): Promise<FoundKey | undefined>;
  /** Whether there are secrets besides those that the gateway makes. */
  importedSecrets(): Promise<ImportedSecrets>;
  /** Stores when secrets were used last, if they still are the previous ones of their keys. A later use that is stored already stays. */
  noteUses(uses: readonly PreviousSecretUse[]): Promise<void>;
}
