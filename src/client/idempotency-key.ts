/**
 * A new `Idempotency-Key`: 16 random bytes in hexadecimal digits. Browsers have `crypto.randomUUID` only in secure contexts: not for plain
 * HTTP from another host.
 */
export function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
