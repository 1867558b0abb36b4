import { ceilToHour, floorToHour, type TimeZone } from './time-zone.ts';

/** How long the buckets of a series are; `total` is one bucket for the whole span. Days and months are those of a time zone. */
export const INTERVALS = ['hour', 'day', 'month', 'total'] as const;
export type Interval = (typeof INTERVALS)[number];

/** From an instant (included) to an instant (excluded), in milliseconds since 1970. */
export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/**
 * The span rounded outwards to whole hours. An hour of UTC belongs to the local day in which it begins, which matters where clocks differ
 * from UTC by half an hour: a span that begins with such a day does not take in the hour that began the day before.
 */
export function wholeHours({ fromMs, toMs }: TimeSpan, zone: TimeZone): TimeSpan {
  const beginsDay = zone.startOf(zone.dateAt(fromMs)) === fromMs;
  return { fromMs: beginsDay ? ceilToHour(fromMs) : floorToHour(fromMs), toMs: ceilToHour(toMs) };
}

/** The span rounded outwards to whole days of UTC. */
export function wholeDays({ fromMs, toMs }: TimeSpan): TimeSpan {
  return { fromMs: Math.floor(fromMs / DAY_MS) * DAY_MS, toMs: Math.ceil(toMs / DAY_MS) * DAY_MS };
}

/** A span as days of UTC, the hours to add to them, and the hours to subtract from them. */
export interface DaysAndHours {
  readonly days: TimeSpan | undefined;
  readonly added: readonly TimeSpan[];
  readonly subtracted: readonly TimeSpan[];
}

/**
 * A span of whole hours as days, with the fewest hours besides. A day that has only begun may be taken whole: hours after `nowMs` have
 * next to no rows.
 */
export function daysAndHours(span: TimeSpan, nowMs: number): DaysAndHours {
  const [first, end] = [cheapestMidnight(span.fromMs, nowMs), cheapestMidnight(span.toMs, nowMs)];
  const spans = (...ends: (readonly [number, number])[]) =>
    ends.filter(([fromMs, toMs]) => fromMs < toMs).map(([fromMs, toMs]) => ({ fromMs, toMs }));
  const added = spans([span.fromMs, first], [end, span.toMs]);
  const subtracted = spans([first, span.fromMs], [span.toMs, end]);
  const hoursMs = (spans: readonly TimeSpan[]) =>
    spans.reduce((sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, nowMs) - fromMs), 0);
  if (first >= end || hoursMs([span]) <= hoursMs([...added, ...subtracted]))
    return { days: undefined, added: [span], subtracted: [] };
  return { days: { fromMs: first, toMs: end }, added, subtracted };
}

/** The midnight before or after an instant, from which there are fewer hours to it. */
function cheapestMidnight(instantMs: number, nowMs: number): number {
  const { fromMs, toMs } = wholeDays({ fromMs: instantMs, toMs: instantMs });
  return Math.min(toMs, nowMs) - instantMs <= instantMs - fromMs ? toMs : fromMs;
}

/**
 * The first instants of the buckets that the span touches, in order; the first one may lie before the span. At most `limit` of them.
 */
export function bucketStarts(
  { fromMs, toMs }: TimeSpan,
  interval: Interval,
  zone: TimeZone,
  limit: number,
): readonly number[] {
  if (interval === 'total') return [fromMs];
  const date = zone.dateAt(fromMs);
  const startOf = (index: number): number => {
    if (interval === 'hour') return floorToHour(fromMs) + index * HOUR_MS;
    return zone.startOf(interval === 'day' ? date + index * DAY_MS : monthAfter(date, index));
  };
  const starts: number[] = [];
  for (let index = 0; starts.length < limit; index += 1) {
    const start = startOf(index);
    if (start >= toMs) break;
    // A day that a zone left out begins, and ends, with the next one.
    if (start !== starts.at(-1)) starts.push(start);
  }
  return starts;
}

/** The first date of the `index`th month after the one of a date. */
function monthAfter(date: number, index: number): number {
  const day = new Date(date);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + index, 1);
}
