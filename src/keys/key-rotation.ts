import type { ChangeContext } from '../audit/change-context.ts';
import { InvalidApiKey, KeyNotFound, NoRotation, RotationInProgress, SecretTaken } from '../errors.ts';
import type { RecordVersions } from '../limiter/record-versions.ts';
import type { Random } from '../platform/random.ts';
import { wholeSecondUp } from '../platform/timestamps.ts';
import { createSecret } from '../secrets/secret-format.ts';
import type { ConsumerKey, KeyRotation } from './consumer-key.ts';
import { isKeyId } from './key-id.ts';
import type { KeptSecret, SecretRepository } from './secrets/secret-repository.ts';
import type { SecretSealer } from './secrets/stored-secret.ts';

/** What the rotation of keys needs. */
export interface KeyRotationsOptions {
  readonly secrets: SecretRepository;
  readonly versions: RecordVersions;
  readonly sealer: SecretSealer;
  readonly random: Random;
  /** As in `KeyServiceOptions`. */
  readonly keyPrefix: string;
}

/** How a key is rotated. */
export interface RotationRequest {
  /** For how long the previous secret stays valid beside the new one. 0 = it is rejected at once. */
  readonly graceSeconds: number;
  /** The new secret, if it comes from outside; undefined = the gateway makes one. */
  readonly secret?: string | undefined;
  /** The key's new expiry, in milliseconds since 1970; null = none, undefined = as it was. */
  readonly expiresAtMs?: number | null | undefined;
  /** The version of the secret with which its consumer asks for another one; undefined for an administrator. */
  readonly presented?: number | undefined;
}

/** A key after its rotation. */
export interface RotatedKey {
  readonly key: ConsumerKey;
  /** The new one. */
  readonly secret: string;
  /** Milliseconds since 1970, a whole second. */
  readonly previousValidUntilMs: number;
}

/** The longest time for which a key, or an admin token, may have two secrets. */
export const MAX_GRACE_SECONDS = 30 * 24 * 60 * 60;

const SECOND_MS = 1000;

/**
 * Gives keys new secrets. A key keeps its id, its history and its counters, and has two secrets at most. Once its promise has resolved, a
 * change takes effect on every replica with the next request; if it rejects with `StoreUnavailable`, the change may or may not have been
 * made. The end of the grace is only stored: `keyFault` in `proxy/steps/authenticate.ts` rejects the previous secret from then on.
 */
export class KeyRotations {
  readonly #options: KeyRotationsOptions;

  constructor(options: KeyRotationsOptions) {
    this.#options = options;
  }

  /**
   * Throws `KeyNotFound`, `RotationInProgress` while the key has two secrets, `SecretTaken`, also for a secret that is the key's own, or
   * `InvalidApiKey` if the presented secret was replaced meanwhile.
   */
  async rotate(
    keyId: string,
    { graceSeconds, secret: given, expiresAtMs, presented }: RotationRequest,
    change: ChangeContext,
  ): Promise<RotatedKey> {
    const { secrets, sealer, random, keyPrefix } = this.#options;
    if (await this.#isRotating(keyId, change)) throw new RotationInProgress();
    const match = given === undefined ? undefined : sealer.matchOf({ kind: 'given', secret: given });
    if (match !== undefined && (await secrets.isTaken(match))) throw new SecretTaken();
    const secret = given ?? createSecret(keyPrefix, random);
    const stored = sealer.seal(keyId, secret, given === undefined ? 'generated' : 'given');
    const previousValidUntilMs =
      graceSeconds === 0
        ? // Also on a machine whose clock is a little behind.
          Math.floor(change.atMs / SECOND_MS) * SECOND_MS
        : wholeSecondUp(change.atMs + graceSeconds * SECOND_MS);
    const key = await this.#change(keyId, () =>
      secrets.rotate(
        keyId,
        { secret: stored, match, replaces: presented, previousValidUntilMs, expiresAtMs },
        change,
      ),
    );
    return { key, secret, previousValidUntilMs };
  }

  /** Leaves the key one of its two secrets; the other one is rejected from now on. Throws `KeyNotFound` or `NoRotation`. */
  async end(keyId: string, keep: KeptSecret, change: ChangeContext): Promise<ConsumerKey> {
    const { secrets } = this.#options;
    if (!(await this.#isRotating(keyId, change))) throw new NoRotation();
    return this.#change(keyId, () => secrets.endRotation(keyId, keep, change));
  }

  /** Checked before the key is marked as being changed, because until the mark expires each of the key's requests costs a read. */
  async #isRotating(keyId: string, { atMs, onlyTags }: ChangeContext): Promise<boolean> {
    const { secrets } = this.#options;
    // Text of another form is no key id, and may hold bytes that a database rejects.
    const rotation = isKeyId(keyId) ? await secrets.findRotation(keyId, onlyTags) : 'key_not_found';
    if (rotation === 'key_not_found') throw new KeyNotFound();
    return rotation !== null && !isOver(rotation, atMs);
  }

  async #change(
    keyId: string,
    write: () => ReturnType<SecretRepository['rotate' | 'endRotation']>,
  ): Promise<ConsumerKey> {
    const { versions } = this.#options;
    await versions.markStale([keyId]);
    const updated = await write();
    if (updated === 'key_not_found') throw new KeyNotFound();
    if (updated === 'rotation_in_progress') throw new RotationInProgress();
    if (updated === 'secret_taken') throw new SecretTaken();
    if (updated === 'secret_replaced') throw new InvalidApiKey();
    if (updated === 'no_rotation') throw new NoRotation();
    await versions.publishVersion([{ keyId, version: updated.version }]);
    return updated.key;
  }
}

/** The key at an instant: without its rotation if the previous secret has expired by then. */
export function rotationAt(key: ConsumerKey, nowMs: number): ConsumerKey {
  return key.rotation !== null && isOver(key.rotation, nowMs) ? { ...key, rotation: null } : key;
}

function isOver({ previousValidUntilMs }: KeyRotation, nowMs: number): boolean {
  return previousValidUntilMs <= nowMs;
}
