import { bucketName } from '../../console/components/charts/bucket-name.ts';
import type { UsageRow } from './own-key.ts';

/** Requests of an hour or a day, each in one of three outcomes. */
export interface Bucket {
  readonly start: number;
  readonly allowed: number;
  /** Rejected with 429. */
  readonly limited: number;
  readonly failed: number;
}

/** How far back, in which steps. */
export interface Range {
  readonly days: number;
  readonly interval: 'hour' | 'day';
}

const HOUR_MS = 3_600_000;

/** The first instants of all buckets of a range that ends now: hours, or days of the browser's time zone. */
export function bucketStarts({ days, interval }: Range, now: number): readonly number[] {
  if (interval === 'hour') {
    const last = Math.floor(now / HOUR_MS) * HOUR_MS;
    return Array.from({ length: days * 24 }, (_, index) => last - (days * 24 - 1 - index) * HOUR_MS);
  }
  const today = new Date(now);
  return Array.from({ length: days }, (_, index) =>
    new Date(today.getFullYear(), today.getMonth(), today.getDate() - (days - 1 - index)).getTime(),
  );
}

/** "Mon, 3 Feb, 14:00", "3 Feb 2026": of no two hours the same, also where clocks go back. */
export function bucketText({ start }: Pick<Bucket, 'start'>, interval: Range['interval']): string {
  return bucketName(start, interval === 'hour' ? 'time' : 'date');
}

/** The rows by bucket; those without requests have no row. */
export function bucketsOf(starts: readonly number[], rows: readonly UsageRow[]): readonly Bucket[] {
  return starts.map((start, index) => {
    const end = starts[index + 1] ?? Number.POSITIVE_INFINITY;
    const own = rows.filter((row) => Date.parse(row.start) >= start && Date.parse(row.start) < end);
    return { start, ...outcomesOf(own) };
  });
}

/** The sum of rows by outcome. */
export function outcomesOf(rows: readonly UsageRow[]): Omit<Bucket, 'start'> {
  const sum = (count: (row: UsageRow) => number) => rows.reduce((total, row) => total + count(row), 0);
  return {
    allowed: sum(({ successful }) => successful),
    limited: sum(({ rateLimited }) => rateLimited),
    failed: sum(({ failed, rateLimited }) => failed - rateLimited),
  };
}
