import { crc32 } from 'node:zlib';
import type { Random } from '../platform/random.ts';
import { randomBase62, toBase62 } from './base62.ts';

const RANDOM_DIGITS = 30;
const CHECKSUM_DIGITS = 6;
const SHAPE = /^[A-Za-z][A-Za-z0-9]{0,15}_[0-9A-Za-z]{36}$/;

/** The longest secret there can be, in characters: a prefix of 16, the `_`, and 36 digits. */
export const MAX_SECRET_LENGTH = 53;

/**
 * A new secret: `<prefix>_`, 30 random base62 characters (178 bits) and 6 base62 characters of the CRC32 of everything before
 * them. The prefix is a letter and at most 15 letters and digits.
 */
export function createSecret(prefix: string, random: Random): string {
  const body = `${prefix}_${randomBase62(RANDOM_DIGITS, random)}`;
  return body + checksum(body);
}

/**
 * Whether a text has the form of a secret and its checksum is right, whatever its prefix: secrets made before the prefix was
 * changed stay valid. Tells typing errors and garbage from what is worth a look-up; it proves nothing.
 */
export function isWellFormedSecret(text: string): boolean {
  // The length first: what anybody sends must not cost more than a secret does.
  return (
    text.length <= MAX_SECRET_LENGTH &&
    SHAPE.test(text) &&
    text.endsWith(checksum(text.slice(0, -CHECKSUM_DIGITS)))
  );
}

/** What is shown in the place of a secret that is not to be shown again. */
export function maskedSecret(prefix: string): string {
  return `${prefix}_${'*'.repeat(RANDOM_DIGITS + CHECKSUM_DIGITS)}`;
}

function checksum(body: string): string {
  return toBase62(crc32(body), CHECKSUM_DIGITS);
}
