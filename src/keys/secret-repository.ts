import type { ChangeContext } from '../audit/change-context.ts';
import type { KeyRotation } from './consumer-key.ts';
import type { UpdatedKey } from './key-repository.ts';
import type { StoredSecret } from './stored-secret.ts';

/** A new secret for a key. Instants are milliseconds since 1970. */
export interface SecretReplacement {
  readonly secret: StoredSecret;
  /** Until when the secret before is valid; not after the change = it is rejected at once. */
  readonly previousValidUntilMs: number;
  /** The key's new expiry; undefined = as it was. */
  readonly expiresAtMs?: number | null | undefined;
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
   * Gives the key another secret, sets `updatedAtMs` and raises the version. `rotation_in_progress`: a secret that it had before is still
   * valid, and it never has more than two.
   */
  rotate(
    keyId: string,
    replacement: SecretReplacement,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'rotation_in_progress'>;
  /** Leaves the key one of its two secrets, sets `updatedAtMs` and raises the version. */
  endRotation(
    keyId: string,
    keep: KeptSecret,
    change: ChangeContext,
  ): Promise<UpdatedKey | 'key_not_found' | 'no_rotation'>;
  /** Notes when secrets were used last, where they still are the previous ones of their keys. The latest use stays. */
  noteUses(uses: readonly PreviousSecretUse[]): Promise<void>;
}
