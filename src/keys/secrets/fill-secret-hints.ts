import { secretHint } from './secret-format.ts';
import { type SecretVault, UnreadableSecret } from './secret-vault.ts';

/** A key whose secret is kept, and has no hint. */
export interface HintlessKey {
  readonly id: string;
  readonly sealedSecret: Buffer;
  readonly secretOrigin: 'generated' | 'given';
}

/** Access to the keys without a hint. Rejects with `StoreUnavailable`. */
export interface HintlessKeys {
  /**
   * Stores the hints that `hintOf` returns for at most `limit` keys after `afterId`, by id; keys for which it returns undefined are
   * skipped. Nothing else of a key changes, nor does its version. Resolves with the last id, or undefined when there are no more keys or
   * another process does it.
   */
  fill(
    afterId: string | undefined,
    limit: number,
    hintOf: (key: HintlessKey) => string | undefined,
  ): Promise<string | undefined>;
}

const KEYS_AT_ONCE = 500;

/**
 * Stores a hint for all keys without one whose secret can be opened: an earlier version stored no hints. Stops early when it is aborted.
 */
export async function fillSecretHints(
  keys: HintlessKeys,
  vault: Pick<SecretVault, 'open'>,
  signal: AbortSignal,
): Promise<void> {
  const hintOf = (key: HintlessKey) => openedHint(key, vault);
  let last = await keys.fill(undefined, KEYS_AT_ONCE, hintOf);
  while (last !== undefined && !signal.aborted) last = await keys.fill(last, KEYS_AT_ONCE, hintOf);
}

function openedHint(key: HintlessKey, vault: Pick<SecretVault, 'open'>): string | undefined {
  try {
    return secretHint(vault.open(key.id, key.sealedSecret), key.secretOrigin);
  } catch (error) {
    // Sealed with an encryption key that this process does not have: the check at start says so.
    if (error instanceof UnreadableSecret) return undefined;
    throw error;
  }
}
