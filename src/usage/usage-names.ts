/** The customer of requests that name none. */
const ANONYMOUS = 'anonymous';

/** Longest endpoint, in bytes of UTF-8. */
const ENDPOINT_BYTES = 256;
/** Longest customer id, in characters and in bytes of UTF-8: 1000 of them and their counts must fit in half a megabyte. */
const CUSTOMER_CHARACTERS = 128;
const CUSTOMER_BYTES = 192;

const PLAIN = /^[\x21-\x7e]{1,128}$/;
/** Control characters, line separators, lone surrogates and characters that change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu;
const REPLACEMENT = '\ufffd';

/** The endpoint under which a path is counted: without query, printable, cut to 256 bytes. Idempotent. */
export function endpointName(path: string): string {
  const query = path.indexOf('?');
  const bare = query === -1 ? path : path.slice(0, query);
  return PLAIN.test(bare) ? bare : cutToBytes(printable(bare, ENDPOINT_BYTES), ENDPOINT_BYTES) || '/';
}

/**
 * The customer under which a request is counted: trimmed, printable, cut to 128 characters and 192 bytes; `anonymous` when nothing is
 * left. Idempotent.
 */
export function customerName(id: string): string {
  if (PLAIN.test(id)) return id;
  const characters = [...printable(id.trim(), 2 * CUSTOMER_CHARACTERS)]
    .slice(0, CUSTOMER_CHARACTERS)
    .join('');
  return cutToBytes(characters, CUSTOMER_BYTES).trim() || ANONYMOUS;
}

/** At most `length` UTF-16 units, so that a long name costs no more than a short one. */
function printable(text: string, length: number): string {
  return text.slice(0, length).replace(UNPRINTABLE, REPLACEMENT);
}

/** Cuts at the border of a character. */
function cutToBytes(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes));
  return text.slice(0, read);
}
