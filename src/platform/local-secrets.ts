import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from './random.ts';

/** Secrets that one machine made for itself. */
export interface LocalSecrets {
  readonly rootToken: string;
  /** 32 bytes. */
  readonly encryptionKey: Buffer;
  /** Where they are kept, for the log: the file is how the owner learns the root token. */
  readonly file: string;
}

/**
 * Reads the secrets kept under `directory`, or makes them the first time, in a file that only its owner may read.
 * Throws when the file can't be read or written or is not what was once written there: making new secrets then would lock
 * the owner out of every sealed key.
 */
export function readOrMakeLocalSecrets(directory: string, random: Random): LocalSecrets {
  const file = join(directory, 'secrets.json');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const made = {
    rootToken: random.bytes(32).toString('base64url'),
    encryptionKey: random.bytes(32).toString('base64'),
  };
  try {
    // wx: of two starts at once only one makes the file, and the other reads it.
    writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (!(typeof error === 'object' && error !== null && 'code' in error && error.code === 'EEXIST'))
      throw error;
  }
  return { ...parse(readFileSync(file, 'utf8'), file), file };
}

function parse(content: string, file: string): Omit<LocalSecrets, 'file'> {
  const kept = parsedObject(content);
  const encryptionKey = Buffer.from(
    typeof kept.encryptionKey === 'string' ? kept.encryptionKey : '',
    'base64',
  );
  if (typeof kept.rootToken !== 'string' || kept.rootToken.length < 32 || encryptionKey.length !== 32) {
    throw new Error(
      `${file} does not hold the secrets made at the first start: restore it, or remove the whole directory to start anew`,
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
