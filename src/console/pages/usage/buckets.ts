import { NO_REQUESTS, type Outcomes, outcomesOf, sumOf } from '../../api/outcome-counts.ts';
import type { UsageRow, UsageSeries } from '../../api/read-usage-series.ts';

export type Interval = 'hour' | 'day' | 'month';

const HOUR_MS = 3_600_000;

/** Requests by time bucket, including buckets without requests. */
export interface Buckets {
  /** The first instants, ascending. */
  readonly starts: readonly number[];
  readonly outcomes: readonly Outcomes[];
}

/** The rows of a series as buckets of the whole span. */
export function bucketsOf({ from, to, rows, timeZone }: UsageSeries, interval: Interval): Buckets {
  const byStart = new Map<number, UsageRow[]>();
  for (const row of rows) {
    const start = Date.parse(row.start);
    byStart.set(start, [...(byStart.get(start) ?? []), row]);
  }
  const known = bucketStarts(Date.parse(from), Date.parse(to), { interval, isUtc: timeZone === 'UTC' });
  // Where clocks change, the rows of the gateway may begin at other instants.
  const starts = [...new Set([...known, ...byStart.keys()])].toSorted((a, b) => a - b);
  return {
    starts,
    outcomes: starts.map((start) => {
      const own = byStart.get(start);
      return own === undefined ? NO_REQUESTS : sumOf(own.map(outcomesOf));
    }),
  };
}

/** The index of the bucket that an instant is in; -1: the series has none. */
export function bucketIndexOf(
  at: number,
  starts: readonly number[],
  { to }: Pick<UsageSeries, 'to'>,
): number {
  return at < Date.parse(to) ? starts.findLastIndex((start) => start <= at) : -1;
}

/** The length of the buckets, and whether days and months are in UTC or in the browser's time zone. */
interface Calendar {
  readonly interval: Interval;
  readonly isUtc: boolean;
}

/** The first instants of the buckets from `from` until `to`, in UTC or in the time zone of the browser. */
function bucketStarts(from: number, to: number, calendar: Calendar): readonly number[] {
  const starts: number[] = [];
  for (let index = 0; ; index += 1) {
    const start = startOf(from, index, calendar);
    // An hour of UTC belongs to the local day in which it begins: a day at half past has its first hour half an hour later.
    if (Math.ceil(start / HOUR_MS) * HOUR_MS >= to) return starts;
    starts.push(start);
  }
}

function startOf(from: number, index: number, { interval, isUtc }: Calendar): number {
  if (interval === 'hour') return Math.floor(from / HOUR_MS) * HOUR_MS + index * HOUR_MS;
  const date = new Date(from);
  const isDay = interval === 'day';
  if (isUtc)
    return Date.UTC(
      date.getUTCFullYear(),
      date.getUTCMonth() + (isDay ? 0 : index),
      isDay ? date.getUTCDate() + index : 1,
    );
  const [year, month] = [date.getFullYear(), date.getMonth() + (isDay ? 0 : index)];
  return new Date(year, month, isDay ? date.getDate() + index : 1).getTime();
}
