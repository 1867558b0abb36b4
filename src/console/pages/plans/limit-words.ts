import { formatNumber } from '../../format/numbers.ts';
import type { AdditionalLimit, Plan, RequestPattern } from './plan-types.ts';

/** Seconds of a unit, to compare two periods; months and years are approximate. */
const UNITS: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 2_629_800,
  year: 31_557_600,
};
/** Units by their names in a period. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ...Object.keys(UNITS).map((unit): [string, string] => [unit, unit]),
  ['s', 'second'],
  ['sec', 'second'],
  ['m', 'minute'],
  ['min', 'minute'],
  ['h', 'hour'],
  ['d', 'day'],
]);
const WORDS = /^(?:(\d+) *)?([a-z]+?)s?$/;
const ISO = /^p(?:(\d+)([ymwd])|t(\d+)([hms]))$/;
const ISO_UNITS: Readonly<Record<string, string>> = {
  y: 'year',
  w: 'week',
  d: 'day',
  h: 'hour',
  s: 'second',
};

interface PlainPeriod {
  readonly count: number;
  readonly unit: string;
}

/** A period with one unit: `hour`, `15 minutes`, `7d`, `PT15M`. Undefined for others, such as `PT1H30M`. */
function readPeriod(text: string): PlainPeriod | undefined {
  const lower = text.toLowerCase();
  const iso = ISO.exec(lower);
  if (iso !== null) {
    const [, dateCount, dateUnit = '', timeCount, timeUnit = ''] = iso;
    const unit = dateUnit === 'm' ? 'month' : timeUnit === 'm' ? 'minute' : ISO_UNITS[dateUnit || timeUnit];
    return unit === undefined ? undefined : { count: Number(dateCount ?? timeCount), unit };
  }
  const [, count = '1', name = ''] = WORDS.exec(lower) ?? [];
  const unit = NAMES.get(name);
  return unit === undefined ? undefined : { count: Number(count), unit };
}

/** "an hour", "a day", "in 15 minutes". Other periods are unchanged. */
function periodWords(text: string): string {
  const period = readPeriod(text);
  if (period === undefined) return `per ${text}`;
  const { count, unit } = period;
  if (count !== 1) return `in ${formatNumber(count)} ${unit}s`;
  return unit === 'hour' ? 'an hour' : `a ${unit}`;
}

/** "1,000 an hour". */
export function rateWords({ limit, period }: { readonly limit: number; readonly period: string }): string {
  return `${formatNumber(limit)} ${periodWords(period)}`;
}

/** "POST /v1/search/**", "GET or POST /v1/orders", "/v1/orders" for any method. */
export function patternWords({ methods, path }: RequestPattern): string {
  return methods === undefined ? path : `${joined(methods, 'or')} ${path}`;
}

/** "100 an hour for each customer at POST /v1/search/**, in shadow". */
export function limitWords(limit: AdditionalLimit): string {
  const { per, mode, match } = limit;
  return [
    rateWords(limit),
    per === 'customer' ? ' for each customer' : '',
    match === undefined ? '' : ` at ${joined(match.map(patternWords), 'or')}`,
    mode === 'shadow' ? ', in shadow' : '',
  ].join('');
}

/** "25", "free", "as the backend reports, 10 until then". */
export function costWords({
  cost,
  reserve,
}: {
  readonly cost: number | string;
  readonly reserve?: number;
}): string {
  if (typeof cost === 'string') return `as the backend reports, ${formatNumber(reserve ?? 1)} until then`;
  return cost === 0 ? 'free' : formatNumber(cost);
}

/** All limits that a plan enforces for each request, shortest period first: "10 a second and 1,000 a day". */
export function planWords({
  limit,
  period,
  additionalLimits = [],
}: Pick<Plan, 'limit' | 'period' | 'additionalLimits'>): string {
  const enforced = additionalLimits.filter(({ mode }) => mode !== 'shadow');
  const general = enforced.filter(({ match, per }) => match === undefined && per !== 'customer');
  const special = enforced.filter((each) => !general.includes(each));
  const rates = [{ limit, period }, ...general].toSorted(
    (a, b) => periodSeconds(a.period) - periodSeconds(b.period),
  );
  return joined([...rates.map(rateWords), ...special.map(limitWords)], 'and');
}

function periodSeconds(text: string): number {
  const period = readPeriod(text);
  return period === undefined ? Number.POSITIVE_INFINITY : period.count * (UNITS[period.unit] ?? 1);
}

/** "a", "a and b", "a, b and c". */
function joined(parts: readonly string[], word: 'and' | 'or'): string {
  if (parts.length < 2) return parts.join('');
  return `${parts.slice(0, -1).join(', ')} ${word} ${parts.at(-1)}`;
}
