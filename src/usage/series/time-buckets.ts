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
const QUARTER_MS = DAY_MS / 4;

/**
 * The span rounded outwards to whole hours. An hour of UTC belongs to the local day in which it begins. So if a span begins with a local
 * day at half past an hour of UTC, that hour belongs to the day before and is left out.
 */
export function wholeHours({ fromMs, toMs }: TimeSpan, zone: TimeZone): TimeSpan {
  const beginsDay = zone.startOf(zone.dateAt(fromMs)) === fromMs;
  return { fromMs: beginsDay ? ceilToHour(fromMs) : floorToHour(fromMs), toMs: ceilToHour(toMs) };
}

/** The span rounded outwards to whole days of UTC. */
export function wholeDays({ fromMs, toMs }: TimeSpan): TimeSpan {
  return { fromMs: Math.floor(fromMs / DAY_MS) * DAY_MS, toMs: Math.ceil(toMs / DAY_MS) * DAY_MS };
}

/** A span as quarters of days of UTC, the hours to add to them, and the hours to subtract from them. */
export interface QuartersAndHours {
  readonly quarters: TimeSpan | undefined;
  readonly added: readonly TimeSpan[];
  readonly subtracted: readonly TimeSpan[];
}

/**
 * Splits a span of whole hours into quarters of days, and as few hours as possible to add or subtract. A quarter that has only begun may be
 * taken whole: hours after `nowMs` have next to no rows.
 */
export function quartersAndHours(span: TimeSpan, nowMs: number): QuartersAndHours {
  const [first, end] = [cheapestBorder(span.fromMs, nowMs), cheapestBorder(span.toMs, nowMs)];
  const spans = (...ends: (readonly [number, number])[]) =>
    ends.filter(([fromMs, toMs]) => fromMs < toMs).map(([fromMs, toMs]) => ({ fromMs, toMs }));
  const added = spans([span.fromMs, first], [end, span.toMs]);
  const subtracted = spans([first, span.fromMs], [span.toMs, end]);
  const hoursMs = (spans: readonly TimeSpan[]) =>
    spans.reduce((sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, nowMs) - fromMs), 0);
  if (first >= end || hoursMs([span]) <= hoursMs([...added, ...subtracted]))
    return { quarters: undefined, added: [span], subtracted: [] };
  return { quarters: { fromMs: first, toMs: end }, added, subtracted };
}

/** The border between two quarters that is the fewest hours away from an instant, of which those after `nowMs` do not count. */
function cheapestBorder(instantMs: number, nowMs: number): number {
  const before = Math.floor(instantMs / QUARTER_MS) * QUARTER_MS;
  const after = Math.ceil(instantMs / QUARTER_MS) * QUARTER_MS;
  return Math.min(after, nowMs) - instantMs <= instantMs - before ? after : before;
}

/** Some hours of each of some days of UTC. */
export interface HoursOfDays {
  readonly days: TimeSpan;
  readonly fromHour: number;
  /** Excluded; 24 for the day's end. */
  readonly toHour: number;
}

/** Groups quarters of days by day: the rest of the first day, whole days, and the beginning of the last day. */
export function hoursOfDays({ fromMs, toMs }: TimeSpan): readonly HoursOfDays[] {
  const firstMidnight = Math.ceil(fromMs / DAY_MS) * DAY_MS;
  const lastMidnight = Math.floor(toMs / DAY_MS) * DAY_MS;
  const partOfDay = (midnight: number, part: TimeSpan): HoursOfDays => ({
    days: { fromMs: midnight, toMs: midnight + DAY_MS },
    fromHour: (part.fromMs - midnight) / HOUR_MS,
    toHour: (part.toMs - midnight) / HOUR_MS,
  });
  if (firstMidnight > lastMidnight) return [partOfDay(lastMidnight, { fromMs, toMs })];
  return [
    partOfDay(firstMidnight - DAY_MS, { fromMs, toMs: firstMidnight }),
    { days: { fromMs: firstMidnight, toMs: lastMidnight }, fromHour: 0, toHour: 24 },
    partOfDay(lastMidnight, { fromMs: lastMidnight, toMs }),
  ].filter(({ days, fromHour, toHour }) => fromHour < toHour && days.fromMs < days.toMs);
}

/** The first instants of the buckets that the span touches, in order; the first one may lie before the span. */
export function bucketStarts(
  { fromMs, toMs }: TimeSpan,
  interval: Interval,
  zone: TimeZone,
): readonly number[] {
  const startOf = bucketsFrom(fromMs, interval, zone);
  const starts: number[] = [];
  let start = startOf(0);
  for (let index = 1; start < toMs; index += 1) {
    // A day that the zone skipped has the same start as the next one.
    if (start !== starts.at(-1)) starts.push(start);
    start = startOf(index);
  }
  return starts;
}

/**
 * The first instant of each bucket by its number, from 0 for the one that has the instant `fromMs`. A day that the zone skipped has a
 * number too.
 */
export function bucketsFrom(fromMs: number, interval: Interval, zone: TimeZone): (index: number) => number {
  if (interval === 'total') return (index) => (index === 0 ? fromMs : Number.POSITIVE_INFINITY);
  if (interval === 'hour') return (index) => floorToHour(fromMs) + index * HOUR_MS;
  const date = zone.dateAt(fromMs);
  return (index) => zone.startOf(interval === 'day' ? date + index * DAY_MS : monthAfter(date, index));
}

/** The first date of the `index`th month after the one of a date. */
function monthAfter(date: number, index: number): number {
  const day = new Date(date);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + index, 1);
}
