import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Platform } from '../platform/platform.ts';
import { makePrivateDirectory, notWritable } from '../platform/process/private-directory.ts';
import { StartFault } from '../platform/process/start-fault.ts';
import type { Random } from '../platform/random.ts';
import { systemCodeOf } from '../platform/system-code.ts';
import type { Settings } from '../settings/settings.ts';
import { recordsDirectory } from './stores/open-stores.ts';

/**
 * The root tokens and encryption keys of the settings. If either is not set, it comes from a file in `DATA_DIR`, which is created if
 * missing. Call this before opening the records: opening creates their directory, whose existence means that there are sealed records.
 */
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

/** Secrets that this machine generated for itself. */
interface LocalSecrets {
  readonly rootToken: string;
  /** 32 bytes. */
  readonly encryptionKey: Buffer;
  /** The file they are kept in. It is logged, because the owner reads the root token there. */
  readonly file: string;
}

/** Decides whether secrets may be generated. */
interface LocalSecretsOptions {
  readonly random: Random;
  /** True if there are records sealed with an encryption key of this file: a new key could not open them. */
  readonly hasSealedRecords: boolean;
}

/**
 * Reads the secrets kept under `directory`, or generates them at the first start, in a file that only its owner may read. Throws a
 * `StartFault` if the file is gone but needed, can't be created, can be read by others, or has no valid secrets: new secrets would
 * lock the owner out of every sealed key.
 */
function readOrMakeLocalSecrets(
  directory: string,
  { random, hasSealedRecords }: LocalSecretsOptions,
): LocalSecrets {
  const file = join(directory, 'secrets.json');
  makePrivateDirectory(directory);
  if (hasSealedRecords && !existsSync(file)) {
    throw new StartFault(
      `${file} is gone, but there are records that its encryption key sealed: restore it, set ENCRYPTION_KEY, or remove the whole directory to start over.`,
    );
  }
  make(file, random);
  // Windows does not keep permissions in the mode, and reports every file as readable.
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0)
    throw new StartFault(`${file} holds secrets and can be read by others: run chmod 600 ${file}`);
  return { ...parse(readFileSync(file, 'utf8'), file), file };
}

function make(file: string, random: Random): void {
  const made = {
    rootToken: random.bytes(32).toString('base64url'),
    encryptionKey: random.bytes(32).toString('base64'),
  };
  try {
    // wx: if two processes start at once, only one creates the file, and the other reads it.
    writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw notWritable(`The file ${file} can not be made`, error);
  }
}

function parse(content: string, file: string): Omit<LocalSecrets, 'file'> {
  const kept = parsedObject(content);
  const encryptionKey = Buffer.from(
    typeof kept.encryptionKey === 'string' ? kept.encryptionKey : '',
    'base64',
  );
  if (typeof kept.rootToken !== 'string' || kept.rootToken.length < 32 || encryptionKey.length !== 32) {
    throw new StartFault(
      `${file} does not hold the secrets made at the first start: restore it, or remove the whole directory to start over`,
    );
  }
  return { rootToken: kept.rootToken, encryptionKey };
}

function parsedObject(content: string): { readonly rootToken?: unknown; readonly encryptionKey?: unknown } {
  try {
    const value: unknown = JSON.parse(content);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
