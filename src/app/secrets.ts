import { existsSync } from 'node:fs';
import type { Settings } from '../config/settings.ts';
import { readOrMakeLocalSecrets } from '../platform/local-secrets.ts';
import type { Platform } from '../platform/platform.ts';
import { recordsDirectory } from './open-stores.ts';

/** To be called before the records are opened, which makes their directory. The root tokens and encryption keys of the settings; where none are set, those of a file in `DATA_DIR`, which is made when missing. */
export function secretsOf(
  settings: Settings,
  { random, log }: Platform,
): Pick<Settings, 'rootTokens' | 'encryptionKeys'> {
  const { rootTokens, encryptionKeys } = settings;
  if (rootTokens.length > 0 && encryptionKeys.length > 0) return settings;
  const hasSealedRecords = encryptionKeys.length === 0 && existsSync(recordsDirectory(settings));
  const local = readOrMakeLocalSecrets(settings.dataDir, { random, hasSealedRecords });
  log.warn({ file: local.file }, 'the root token and the encryption key that were not set are in this file');
  return {
    rootTokens: rootTokens.length > 0 ? rootTokens : [local.rootToken],
    encryptionKeys: encryptionKeys.length > 0 ? encryptionKeys : [local.encryptionKey],
  };
}
