import { hash } from 'node:crypto';
import { InvalidCursor } from '../errors.ts';

/**
 * Encodes a position in a list, opaque to clients. `query` is what all pages of the list have in common: the cursor is not valid for
 * another query. Both must be JSON values.
 */
export function writeCursor(place: readonly unknown[], query: unknown): string {
  return Buffer.from(JSON.stringify([digestOf(query), ...place])).toString('base64url');
}

/** The position in a cursor. Throws `InvalidCursor` if it is for another query. A client can forge one: check the values. */
export function readCursor(cursor: string, query: unknown): readonly unknown[] {
  const [digest, ...place] = parsed(cursor);
  if (digest !== digestOf(query)) throw new InvalidCursor();
  return place;
}

/** An instant that Postgres can compare: its first year is 4713 BC. */
export function isInstant(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= FIRST_INSTANT && Number(value) < END_OF_INSTANTS;
}

const FIRST_INSTANT = Date.parse('0000-01-01T00:00:00Z');
const END_OF_INSTANTS = Date.UTC(10_000, 0, 1);

function digestOf(query: unknown): string {
  return hash('sha256', JSON.stringify(query), 'base64url').slice(0, 16);
}

function parsed(cursor: string): readonly unknown[] {
  try {
    const content: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(content)) return content;
  } catch {
    // Not JSON: not one of our cursors.
  }
  throw new InvalidCursor();
}
