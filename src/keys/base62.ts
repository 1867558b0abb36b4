import type { Random } from '../platform/random.ts';

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The largest multiple of 62 that a byte can reach: bytes from here on would make the first digits more likely. */
const FAIR_BELOW = 248;

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

/** A whole number from 0 on, in base62, with zeros in front up to `length` digits. */
export function toBase62(value: number, length: number): string {
  let text = '';
  for (let rest = value; rest > 0; rest = Math.floor(rest / 62)) {
    text = DIGITS.charAt(rest % 62) + text;
  }
  return text.padStart(length, '0');
}
