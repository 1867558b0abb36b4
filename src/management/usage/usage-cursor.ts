import { createHash } from 'node:crypto';
import { InvalidCursor } from '../../errors.ts';
import type { SeriesPosition } from '../../usage/series/series-store.ts';
import type { TimeSpan } from '../../usage/series/time-buckets.ts';

/** Where a page of a series begins. The span is part of it, because the default one moves on between two pages. */
export interface UsageCursor {
  readonly span: TimeSpan;
  readonly after: SeriesPosition;
}

/** The last millisecond that a `Date` can have. */
const LAST_INSTANT = 8.64e15;

/** Opaque to callers. `query` is all that the pages have in common: another query can't be read on with this cursor. */
export function writeUsageCursor({ span, after }: UsageCursor, query: unknown): string {
  const content = [digestOf(query), span.fromMs, span.toMs, after.startMs, ...after.group];
  return Buffer.from(JSON.stringify(content)).toString('base64url');
}

/** Throws `InvalidCursor` for a cursor that `writeUsageCursor` did not make for this query with this number of groups. */
export function readUsageCursor(cursor: string, query: unknown, groups: number): UsageCursor {
  const [digest, fromMs, toMs, startMs, ...group] = parsed(cursor);
  const isOurs = digest === digestOf(query) && isInstant(fromMs) && isInstant(toMs) && isInstant(startMs);
  if (!isOurs || group.length !== groups || !group.every(isStorable)) throw new InvalidCursor();
  return { span: { fromMs, toMs }, after: { startMs, group } };
}

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

function isInstant(value: unknown): value is number {
  return Number.isInteger(value) && Math.abs(Number(value)) <= LAST_INSTANT;
}

/** What Postgres can be asked for. */
function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}
