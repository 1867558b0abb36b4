import type { SecretVault } from './secret-vault.ts';

/** The part of a stored key that depends on the encryption key. */
export interface SealedKey {
  readonly id: string;
  /** Null for a key whose secret is not kept (`SECRET_REVEAL=once`). */
  readonly sealedSecret: Buffer | null;
}

/** Access to what is sealed, for the rotation of encryption keys and the check at start. Rejects with `StoreUnavailable`. */
export interface SealedKeys {
  /** At most `limit` keys, by id, after the one given. */
  after(keyId: string | undefined, limit: number): Promise<readonly SealedKey[]>;
  /** At most `limit` of the oldest and as many of the newest, of those whose secret is kept. */
  oldestAndNewest(limit: number): Promise<readonly SealedKey[]>;
  /** Replaces both values together, unless the key was rotated or deleted meanwhile. Nothing else of the key changes, nor does its version. */
  replace(key: SealedKey, lookup: Buffer, sealedSecret: Buffer): Promise<void>;
}

/** How many keys were found in which state. */
export interface RotationReport {
  /** Sealed again by this run. */
  rotated: number;
  /** Sealed with the first encryption key already. */
  current: number;
  /** Without a kept secret: their look-up values can't be derived again, so the encryption key they were made under must stay in the list. */
  unkept: number;
}

const KEYS_AT_ONCE = 500;

/**
 * Brings every key under the first encryption key, while replicas work: a key is found and opened before and after, as long as
 * they all have both encryption keys. May be ended at any time and run again. Rejects with `UnreadableSecret` when a key was sealed with
 * an encryption key that is not in the list.
 */
export async function rotateEncryptionKey(keys: SealedKeys, vault: SecretVault): Promise<RotationReport> {
  const report: RotationReport = { rotated: 0, current: 0, unkept: 0 };
  let last: string | undefined;
  while (true) {
    const page = await keys.after(last, KEYS_AT_ONCE);
    for (const key of page) report[await rotateOne(key, keys, vault)] += 1;
    last = page.at(-1)?.id;
    if (page.length < KEYS_AT_ONCE) return report;
  }
}

async function rotateOne(
  key: SealedKey,
  keys: SealedKeys,
  vault: SecretVault,
): Promise<keyof RotationReport> {
  if (key.sealedSecret === null) return 'unkept';
  if (vault.isCurrent(key.sealedSecret)) return 'current';
  const secret = vault.open(key.id, key.sealedSecret);
  await keys.replace(key, vault.lookup(secret), vault.seal(key.id, secret));
  return 'rotated';
}
