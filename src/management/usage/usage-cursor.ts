import { InvalidCursor } from '../../errors.ts';
import { isStorable } from '../../platform/text/storable-text.ts';
import type { SeriesPosition } from '../../usage/series/series-store.ts';
import type { TimeSpan } from '../../usage/series/time-buckets.ts';
import { isRecordedInstant } from '../formats.ts';
import { isInstant, readCursor, writeCursor } from '../page-cursor.ts';

/** The position where a page of a series begins, with its span: the default span moves on between two pages. */
export interface UsageCursor {
  readonly span: TimeSpan;
  readonly after: SeriesPosition;
}

export function writeUsageCursor({ span, after }: UsageCursor, query: unknown): string {
  return writeCursor([span.fromMs, span.toMs, after.startMs, ...after.group], query);
}

/** Throws `InvalidCursor` unless `writeUsageCursor` made the cursor for this query with this number of groups. */
export function readUsageCursor(cursor: string, query: unknown, groups: number): UsageCursor {
  const [fromMs, toMs, startMs, ...group] = readCursor(cursor, query);
  // A span of a query. A bucket may begin before it.
  const isOurs = isInstant(fromMs) && isInstant(toMs) && isInstant(startMs);
  if (!isOurs || !isRecordedInstant(fromMs) || !isRecordedInstant(toMs)) throw new InvalidCursor();
  if (group.length !== groups || !group.every(isStorable)) throw new InvalidCursor();
  return { span: { fromMs, toMs }, after: { startMs, group } };
}
