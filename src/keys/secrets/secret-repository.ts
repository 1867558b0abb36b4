import type { ChangeContext } from '../../audit/change-context.ts';
import type { ConsumerKey, KeyRotation } from '../consumer-key.ts';
import type { NewConsumerKey, UpdatedKey } from '../key-repository.ts';
import type { SecretMatch, StoredSecret } from './stored-secret.ts';

/** A new secret for a key. Instants are milliseconds since 1970. */
export interface SecretReplacement {
  readonly secret: StoredSecret;
  /** Of a secret from outside; undefined for one that the gateway has made. */
  readonly match?: SecretMatch | undefined;
  /** Until when the secret before is valid; not after the change = it is rejected at once. */
  readonly previousValidUntilMs: number;
  /** The key's new expiry; undefined = as it was. */
  readonly expiresAtMs?: number | null | undefined;
}

/** A key with a secret from outside, to be stored. */
export interface ImportedKey {
  readonly key: NewConsumerKey;
  readonly match: SecretMatch;
}

/** Why a key was not stored: its secret is, or was a moment ago, another secret of a key, or its plan does not exist. */
export type ImportFailure = 'secret_taken' | 'plan_not_found';

/** How keys are imported. */
export interface ImportOptions {
  /** Of keys whose secret is taken: whether then no key at all is stored, or all others are. */
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
  /** Grows with each secret that comes in from outside: what was found to be wrong at one version may be right at a later one. */
  readonly version: number;
  /** Some were given in plain. They have no checksum. */
  readonly given: boolean;
  /** Some are known only by their digests, and are found by it. */
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

/** Which of two secrets a key goes on with. */
export type KeptSecret = 'new' | 'previous';

/** Where the secrets of keys are kept. Every method rejects with `StoreUnavailable` when the store does not respond. */
export interface SecretRepository {
  /** The key's rotation, also one that is over; null = none. */
  findRotation(keyId: string, onlyTags: readonly string[]): Promise<KeyRotation | null | 'key_not_found'>;
  /**
   * Gives the key another secret, sets `updatedAtMs` and raises the version. `secret_taken`: as in `import`. `rotation_in_progress`: a secret that it had before is still
   * valid, and it never has more than two.
   */
  rotate(
    keyId: string,
    replacement: SecretReplacement,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'rotation_in_progress' | 'secret_taken'>;
  /** Leaves the key one of its two secrets, sets `updatedAtMs` and raises the version. */
  endRotation(
    keyId: string,
    keep: KeptSecret,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'no_rotation'>;
  /**
   * Stores keys with secrets from outside, unless one is or was a moment ago another secret of a key, or two of them are equal: each
   * secret belongs to one key, whichever replicas store them. For each key why it was not stored, undefined when it was. Nothing is
   * stored where a plan does not exist. Of the failures of `onConflict` `fail` only those that caused it are named.
   */
  import(
    keys: readonly ImportedKey[],
    options: ImportOptions,
    change: ChangeContext,
  ): Promise<readonly (ImportFailure | undefined)[]>;
  /** Whether a key has this secret, or had it a moment ago. */
  isTaken(match: SecretMatch): Promise<boolean>;
  /** The key that has a secret. Also a previous one that is over, as `rotation` says. */
  findBySecret(match: SecretMatch): Promise<FoundKey | undefined>;
  /** Whether there are secrets besides those that the gateway makes. */
  importedSecrets(): Promise<ImportedSecrets>;
  /** Notes when secrets were used last, where they still are the previous ones of their keys. The latest use stays. */
  noteUses(uses: readonly PreviousSecretUse[]): Promise<void>;
}
