import type { AuditLog } from '../../audit/audit-log.ts';
import type { SecretVault } from '../../secrets/secret-vault.ts';
import type { SealedKeys } from './rotate-sealed-keys.ts';

/** How many of the oldest and how many of the newest keys are tried. */
const SAMPLE = 100;

/** What depends on the encryption keys in every store, also where no secret is kept. */
interface SealedRecords {
  readonly sealedKeys: SealedKeys;
  readonly audit: Pick<AuditLog, 'hasKnownEnd'>;
}

/**
 * Whether the stored consumer keys were sealed with the encryption keys, by a sample of the oldest and the newest: `all`, `some` (an old
 * encryption key was taken out of the list too early) or `none` (the list, or the records, are those of another installation). Keys whose
 * secret is not kept are skipped: that they were made under another encryption key shows in the audit log, which gives `none` as well.
 * Rejects with `StoreUnavailable`.
 */
export async function checkEncryptionKey(
  { sealedKeys, audit }: SealedRecords,
  vault: SecretVault,
): Promise<'all' | 'some' | 'none'> {
  if (!(await audit.hasKnownEnd())) return 'none';
  const sample = await sealedKeys.oldestAndNewest(SAMPLE);
  const opened = sample.filter(({ sealedSecret, sealedDigest }) => {
    const sealed = sealedSecret ?? sealedDigest;
    return sealed !== null && vault.knows(sealed);
  });
  if (opened.length === sample.length) return 'all';
  return opened.length > 0 ? 'some' : 'none';
}
