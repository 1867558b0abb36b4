import { sql } from 'kysely';

/** Characters that must be escaped in an element of an array. */
const SPECIAL = /["\\]/;

/** An array literal of Postgres. The client's own conversion would look at each element twice. */
export function textArray(values: readonly string[]): string {
  if (values.length === 0) return '{}';
  const escaped = SPECIAL.test(values.join())
    ? values.map((value) => value.replace(/["\\]/g, '\\$&'))
    : values;
  return `{"${escaped.join('","')}"}`;
}

/** A list of `bytea` as one parameter. */
export function bytesArray(values: readonly Uint8Array[]) {
  return sql`${textArray(values.map(bytesText))}::bytea[]`;
}

/** As Postgres writes a `bytea`. */
export function bytesText(bytes: Uint8Array): string {
  return `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`;
}
