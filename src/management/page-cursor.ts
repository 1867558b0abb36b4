import { createHash } from 'node:crypto';
import { InvalidCursor } from '../errors.ts';

/**
 * Names a place in a list, opaque to callers. `query` is all that the pages have in common: another query can't be read on with
 * this cursor. Both are what JSON can hold.
 */
export function writeCursor(place: readonly unknown[], query: unknown): string {
  return Buffer.from(JSON.stringify([digestOf(query), ...place])).toString('base64url');
}

/** The place of a cursor. Throws `InvalidCursor` for one that was not made for this query; what it holds must be checked all the same. */
export function readCursor(cursor: string, query: unknown): readonly unknown[] {
  const [digest, ...place] = parsed(cursor);
  if (digest !== digestOf(query)) throw new InvalidCursor();
  return place;
}

/** An instant that a `Date` can have. */
export function isInstant(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(Number(value)) <= LAST_INSTANT;
}

const LAST_INSTANT = 8.64e15;

function digestOf(query: unknown): string {
  return createHash('sha256').update(JSON.stringify(query)).digest('base64url').slice(0, 16);
}

function parsed(cursor: string): readonly unknown[] {
  try {
    const content: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (Array.isArray(content)) return content;
  } catch {
    // Then it is none of ours.
  }
  throw new InvalidCursor();
}
