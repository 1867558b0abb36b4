import { crc32 } from 'node:zlib';
import type { Random } from '../platform/random.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Random bytes from this multiple of 62 on are skipped: they would make the first digits more likely. */
const FAIR_BELOW = 248;

const RANDOM_DIGITS = 30;
const CHECKSUM_DIGITS = 6;
const SHAPE = /^[A-Za-z][A-Za-z0-9]{0,15}_[0-9A-Za-z]{36}$/;

/** The longest secret that the gateway makes, in characters: a prefix of 16, the `_`, and 36 digits. */
export const MAX_GENERATED_LENGTH = 53;

/** The form of a secret from outside: token68 (RFC 9110 11.2), so that an `Authorization` header can carry it. */
export const GIVEN_SECRET = /^[A-Za-z0-9\-._~+/]+=*$/;
/** Shortest and longest secret from outside, in characters. One that is known only by its digest may be shorter. */
export const MIN_SECRET_LENGTH = 24;
export const MAX_SECRET_LENGTH = 512;

/**
 * A new secret: `<prefix>_`, 30 random base62 characters (178 bits) and 6 base62 characters of the CRC32 of everything before
 * them. The prefix is a letter and at most 15 letters and digits.
 */
export function createSecret(prefix: string, random: Random): string {
  const body = `${prefix}_${randomBase62(RANDOM_DIGITS, random)}`;
  return body + checksum(body);
}

/**
 * Whether a text has the form and the checksum of a secret that a gateway makes, with any prefix: secrets made before the prefix was
 * changed stay valid. Filters out typing errors and garbage before a look-up; it proves nothing.
 */
export function isWellFormedSecret(text: string): boolean {
  // The length is checked first, so that a long text costs no more than a secret.
  return (
    text.length <= MAX_GENERATED_LENGTH &&
    SHAPE.test(text) &&
    text.endsWith(checksum(text.slice(0, -CHECKSUM_DIGITS)))
  );
}

/** How many random digits a hint shows after the prefix, and how many characters of the secret's end. */
const HINT_DIGITS = 4;
const HINT_END = 4;
/** Most characters that a hint shows of a secret from outside. */
const GIVEN_HINT = 11;
/** Largest part that a hint shows of a secret from outside, which may be short or easy to guess. */
const HINT_SHARE = 1 / 4;

/**
 * The hint by which people recognise a secret: its prefix with the first 4 digits, and its last 4, `tg_Ab3d…9xYz`. For a secret from
 * outside the first 7 and the last 4 characters, or fewer, so that it shows at most a quarter of the secret.
 */
export function secretHint(secret: string, origin: 'generated' | 'given'): string {
  if (origin === 'generated') {
    return `${secret.slice(0, secret.indexOf('_') + 1 + HINT_DIGITS)}…${secret.slice(-HINT_END)}`;
  }
  const most = Math.min(GIVEN_HINT, Math.floor(secret.length * HINT_SHARE));
  const atEnd = Math.floor((most * HINT_END) / GIVEN_HINT);
  return `${secret.slice(0, most - atEnd)}…${atEnd === 0 ? '' : secret.slice(-atEnd)}`;
}

/** What is shown in the place of a secret that is not to be shown again. */
export function maskedSecret(prefix: string): string {
  return `${prefix}_${'*'.repeat(RANDOM_DIGITS + CHECKSUM_DIGITS)}`;
}

function checksum(body: string): string {
  return toBase62(crc32(body), CHECKSUM_DIGITS);
}

/** `length` base62 digits, each as likely as any other. */
export function randomBase62(length: number, random: Random): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes(length - text.length)) {
      text += byte < FAIR_BELOW ? DIGITS.charAt(byte % 62) : '';
    }
  }
  return text;
}

/** A whole number from 0 on, in base62, padded with zeros to `length` digits. */
function toBase62(value: number, length: number): string {
  let text = '';
  for (let rest = value; rest > 0; rest = Math.floor(rest / 62)) {
    text = DIGITS.charAt(rest % 62) + text;
  }
  return text.padStart(length, '0');
}
