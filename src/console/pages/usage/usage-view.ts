import { instantText } from '../../api/instant-text.ts';
import type { UsageQuery } from '../../api/read-usage-series.ts';
import { DATE, dateStart, dateText, utcDateStart } from '../../format/date-text.ts';
import type { Interval } from './buckets.ts';

/** The length of a range. */
interface RangeLength {
  readonly unit: 'day' | 'month';
  readonly count: number;
}

interface Range extends RangeLength {
  readonly label: string;
  /** The default length of its buckets. */
  readonly interval: Interval;
}

export const RANGES = {
  '24h': { label: 'Last 24 hours', unit: 'day', count: 1, interval: 'hour' },
  '7d': { label: 'Last 7 days', unit: 'day', count: 7, interval: 'day' },
  '30d': { label: 'Last 30 days', unit: 'day', count: 30, interval: 'day' },
  '90d': { label: 'Last 90 days', unit: 'day', count: 90, interval: 'day' },
  '12mo': { label: 'Last 12 months', unit: 'month', count: 12, interval: 'month' },
} as const satisfies Record<string, Range>;
type RangeName = keyof typeof RANGES;

export const INTERVAL_LABELS: Readonly<Record<Interval, string>> = {
  hour: 'Hour',
  day: 'Day',
  month: 'Month',
};

export const GROUPINGS = {
  key: 'Key',
  rateLimit: 'Plan',
  endpoint: 'Endpoint',
  customer: 'Customer',
} as const;
export type Grouping = keyof typeof GROUPINGS;

const FILTERS = ['rateLimitId', 'consumerApiKeyId', 'tag', 'externalId'] as const;
type Filter = (typeof FILTERS)[number];

/** The first and the last date of a custom range, `YYYY-MM-DD`. */
interface Dates {
  readonly first: string;
  readonly last: string;
}

/** The state of the usage page. All of it is in the URL, so that a link shows the same to others. */
export interface UsageView {
  readonly range: RangeName | 'custom';
  /** Of a custom range. The day of `at` is among them, unless the buckets are months. */
  readonly dates: Dates | undefined;
  readonly interval: Interval;
  readonly groupBy: Grouping | undefined;
  readonly isCompared: boolean;
  readonly isUtc: boolean;
  readonly filters: Readonly<Partial<Record<Filter, string>>>;
  /** An instant in the bucket that the view points out. */
  readonly at?: number;
}

/** Reads the URL. Unknown values are ignored. */
export function readView(params: URLSearchParams): UsageView {
  const at = Date.parse(params.get('at') ?? '');
  const [first, last] = [params.get('from') ?? '', params.get('to') ?? ''];
  const isUtc = params.get('zone') === 'utc';
  const named = isRange({ first, last }) ? { first, last } : undefined;
  const length = oneOf(Object.keys(RANGES) as RangeName[], params.get('range'));
  const range = named === undefined ? (length ?? '24h') : 'custom';
  const usual = range === 'custom' ? 'day' : RANGES[range].interval;
  const interval = oneOf(['hour', 'day', 'month'], params.get('interval')) ?? usual;
  // A month may begin before the range: its bucket has only those days of it that the range has.
  const isWidened = named !== undefined && !Number.isNaN(at) && interval !== 'month';
  return {
    range,
    dates: isWidened ? withDayOf(at, named, isUtc) : named,
    interval,
    groupBy: oneOf(Object.keys(GROUPINGS) as Grouping[], params.get('groupBy')),
    isCompared: params.get('compare') === '1',
    isUtc,
    filters: Object.fromEntries(
      FILTERS.flatMap((name) => (params.get(name) ? [[name, params.get(name)]] : [])),
    ),
    ...(!Number.isNaN(at) && { at }),
  };
}

/** Whether both are dates, of which the first is not the later one. */
export function isRange({ first, last }: Dates): boolean {
  return DATE.test(first) && DATE.test(last) && first <= last;
}

/** The fields of an address that shows the same buckets at any later time, and points one of them out. */
export function momentFields(
  view: UsageView,
  { from, to }: Span,
  at: number,
): Readonly<Record<string, string>> {
  const { isUtc, interval } = view;
  const { first, last } = view.dates ?? { first: dateOf(from, isUtc), last: dateOf(to - 1, isUtc) };
  return { range: '', from: first, to: last, interval, at: instantText(at) };
}

/** The dates, and that of the instant: in the time zone of the reader it may be before or after those that an address names. */
function withDayOf(at: number, dates: Dates, isUtc: boolean): Dates {
  const { from, to } = spanOfDates(dates, isUtc);
  const day = dateOf(at, isUtc);
  // Where a time zone differs from UTC by half an hour, the first hour of a day begins before it.
  if ((at > from - HOUR_MS && at < to) || !DATE.test(day)) return dates;
  return at < to ? { ...dates, first: day } : { ...dates, last: day };
}

const HOUR_MS = 3_600_000;

/** The date of an instant, in UTC or in the time zone of the browser. */
export function dateOf(instant: number, isUtc: boolean): string {
  return isUtc ? new Date(instant).toISOString().slice(0, 10) : dateText(instant);
}

function oneOf<T extends string>(all: readonly T[], text: string | null): T | undefined {
  return all.find((each) => each === text);
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The span of a view at the time `now`. */
export function spanOf({ range, dates, interval, isUtc }: UsageView, now: number): Span {
  if (range === 'custom' && dates !== undefined) return spanOfDates(dates, isUtc);
  const length = RANGES[range === 'custom' ? '24h' : range];
  if (interval === 'hour') return { from: moved(now, backwards(length), isUtc), to: now };
  const { unit, count } = length;
  // Whole days, or months, of which the present one is the last.
  const last = unit === 'day' ? now : firstOfMonth(now, isUtc);
  return { from: dayStart(moved(last, { unit, count: 1 - count }, isUtc), isUtc), to: now };
}

function spanOfDates({ first, last }: Dates, isUtc: boolean): Span {
  const startOf = isUtc ? utcDateStart : dateStart;
  return { from: startOf(first, 0), to: startOf(last, 1) };
}

/** The previous period: the same length, at the same times of day. */
export function spanBefore(view: UsageView, { from, to }: Span): Span {
  const { range, dates, isUtc } = view;
  const length: RangeLength =
    range === 'custom' && dates !== undefined
      ? { unit: 'day', count: daysBetween(dates) }
      : RANGES[range as RangeName];
  const back = backwards(length);
  return { from: moved(from, back, isUtc), to: moved(to, back, isUtc) };
}

/** The query of the series. `timeZone` is `localZone`, unless the view is in UTC. */
export function queryOf(
  { interval, isUtc, filters }: UsageView,
  { from, to }: Span,
  localZone: string,
): UsageQuery {
  return {
    from: instantText(from),
    to: instantText(to),
    interval,
    timeZone: isUtc ? 'UTC' : localZone,
    ...filters,
  };
}

/** The query of a CSV file with all groups of the view, bucket by bucket. */
export function csvQueryOf(view: UsageView, now: number, localZone: string): UsageQuery {
  const { groupBy, interval } = view;
  const query = queryOf(view, spanOf(view, now), localZone);
  if (groupBy === undefined) return query;
  if (!isByUtcDay(groupBy)) return { ...query, groupBy };
  return { ...query, groupBy, timeZone: 'UTC', interval: interval === 'hour' ? 'day' : interval };
}

/** The gateway keeps endpoints and customers only by day in UTC. */
export function isByUtcDay(groupBy: Grouping | undefined): boolean {
  return groupBy === 'endpoint' || groupBy === 'customer';
}

function backwards({ unit, count }: RangeLength): RangeLength {
  return { unit, count: -count };
}

/** The instant moved by a number of days or months; a negative number moves it back. */
function moved(at: number, { unit, count: by }: RangeLength, isUtc: boolean): number {
  const date = new Date(at);
  if (isUtc) {
    if (unit === 'day') date.setUTCDate(date.getUTCDate() + by);
    else date.setUTCMonth(date.getUTCMonth() + by);
  } else if (unit === 'day') date.setDate(date.getDate() + by);
  else date.setMonth(date.getMonth() + by);
  return date.getTime();
}

function firstOfMonth(at: number, isUtc: boolean): number {
  const date = new Date(at);
  if (isUtc) date.setUTCDate(1);
  else date.setDate(1);
  return date.getTime();
}

function dayStart(at: number, isUtc: boolean): number {
  const date = new Date(at);
  if (isUtc) date.setUTCHours(0, 0, 0, 0);
  else date.setHours(0, 0, 0, 0);
  return date.getTime();
}

function daysBetween({ first, last }: Dates): number {
  return Math.round((utcDateStart(last, 1) - utcDateStart(first, 0)) / 86_400_000);
}
