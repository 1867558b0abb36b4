import { allItems, isRead, type NoteUnreadable } from '../../secrets/rotate-seals.ts';
import { digestOfSecret } from '../../secrets/secret-digest.ts';
import type { RotationReport, SecretVault } from '../../secrets/secret-vault.ts';

/** The part of a stored secret that depends on the encryption key. */
export interface SealedKey {
  /** Of the consumer key. */
  readonly id: string;
  /** Null for a secret that is not kept: made with `SECRET_REVEAL=once`, or known only by its digest. */
  readonly sealedSecret: Buffer | null;
  /** Of a secret that was imported by hash; else null. */
  readonly sealedDigest: Buffer | null;
}

/** All that depends on the encryption key. */
export interface ResealedKey extends Omit<SealedKey, 'id'> {
  readonly lookup: Buffer;
  readonly digestLookup: Buffer;
}

/** The present secrets of keys, or the previous ones that are still valid during a rotation. */
export type SecretAge = 'present' | 'previous';

/** Access to what is sealed, for the rotation of encryption keys and the check at start. Rejects with `StoreUnavailable`. */
export interface SealedKeys {
  /** At most `limit` secrets of keys after `keyId`, sorted by the id of the key. Expired previous secrets are left out. */
  after(age: SecretAge, keyId: string | undefined, limit: number): Promise<readonly SealedKey[]>;
  /** The present secrets of at most `limit` of the oldest and as many of the newest keys, of those whose secret or digest is kept. */
  oldestAndNewest(limit: number): Promise<readonly SealedKey[]>;
  /**
   * Replaces all fields that depend on the encryption key together, unless the key was rotated or deleted meanwhile. Nothing else of the
   * key changes, nor does its version.
   */
  replace(age: SecretAge, key: SealedKey, by: ResealedKey): Promise<void>;
}

/** Statements under way at a time, each about one key: several keys in one would lock them in an order that others don't keep to. */
const REPLACED_AT_ONCE = 8;

/**
 * Seals every secret with the first encryption key, while replicas work: as long as they all have both encryption keys, each key is found
 * and opened before and after. May be interrupted at any time and run again. `noteUnreadable` gets the ids of keys that have a secret
 * which was sealed with an encryption key that is not in the list.
 */
export async function rotateEncryptionKey(
  keys: SealedKeys,
  vault: SecretVault,
  noteUnreadable: NoteUnreadable,
): Promise<RotationReport> {
  const rotation = { keys, vault, noteUnreadable };
  const report = await rotateAll(rotation);
  // Repeated until nothing is left: a rotation of a key that begins or is undone meanwhile moves a secret from one table to the other.
  for (let { rotated } = report; rotated > 0; ) {
    ({ rotated } = await rotateAll(rotation));
    report.rotated += rotated;
  }
  return report;
}

interface Rotation {
  readonly keys: SealedKeys;
  readonly vault: SecretVault;
  readonly noteUnreadable: NoteUnreadable;
}

async function rotateAll({ keys, vault, noteUnreadable }: Rotation): Promise<RotationReport> {
  const report: RotationReport = { rotated: 0, current: 0, unkept: 0 };
  for (const age of ['present', 'previous'] as const) {
    const waiting = allItems<SealedKey>((last, limit) => keys.after(age, last?.id, limit));
    const work = async () => {
      for await (const key of waiting) {
        const rotate = async () => {
          report[await rotateOne(age, key, { keys, vault })] += 1;
        };
        if (!(await isRead(rotate))) noteUnreadable(key.id);
      }
    };
    await Promise.all(Array.from({ length: REPLACED_AT_ONCE }, work));
  }
  return report;
}

async function rotateOne(
  age: SecretAge,
  key: SealedKey,
  { keys, vault }: Pick<Rotation, 'keys' | 'vault'>,
): Promise<keyof RotationReport> {
  const { id, sealedSecret, sealedDigest } = key;
  const sealed = sealedSecret ?? sealedDigest;
  if (sealed === null) return 'unkept';
  if (vault.isCurrent(sealed)) return 'current';
  if (sealedSecret !== null) {
    const secret = vault.open(id, sealedSecret);
    const by = {
      lookup: vault.lookup(secret),
      digestLookup: vault.digestLookup(digestOfSecret(secret)),
      sealedSecret: vault.seal(id, secret),
      sealedDigest,
    };
    await keys.replace(age, key, by);
  } else {
    const digest = vault.openDigest(id, sealed);
    const lookup = vault.digestLookup(digest);
    const by = { lookup, sealedSecret, sealedDigest: vault.sealDigest(id, digest), digestLookup: lookup };
    await keys.replace(age, key, by);
  }
  return 'rotated';
}
