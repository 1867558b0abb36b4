import { hash } from 'node:crypto';

/** The SHA-256 digest of a secret, as other systems write it: 64 hexadecimal digits, or base64 or base64url of 32 bytes. */
export const SECRET_DIGEST = /^(?:[0-9A-Fa-f]{64}|[A-Za-z0-9+/_-]{43}=?)$/;

/** SHA-256 of a secret: 32 bytes. */
export function digestOfSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** The 32 bytes that a text of the form of `SECRET_DIGEST` stands for. */
export function digestOfText(value: string): Buffer {
  return Buffer.from(value, value.length === 64 ? 'hex' : 'base64');
}
