/**
 * The length of a window. Fixed periods have a length in milliseconds; months and years follow the calendar in UTC. Periods with the same
 * token are equal, as `hour`, `60 minutes` and `PT1H`. The token is the length in milliseconds as a decimal number, or `<months>mo`.
 */
export type Period =
  | { readonly kind: 'fixed'; readonly token: string; readonly lengthMs: number }
  | { readonly kind: 'calendar'; readonly token: string; readonly months: number };

/** The forms of a period, as a message for the author of an invalid one. */
export const PERIOD_RULE =
  'must be second, minute, hour, day, week, month or year, optionally plural and with a count before it ("15 minutes", "48hours", "60 min"), ' +
  'compact (30s, 15m, 12h, 7d), or an ISO 8601 duration (PT15M, P7D, P1M), from 1 second to 366 days, ' +
  'in months from 1 to 12';

/** The longest text that can be a period; anything longer is rejected before it is read. */
const TEXT_LENGTH = 48;
const SECOND_MS = 1000;
const DAY_SECONDS = 86_400;
const LONGEST_SECONDS = 366 * DAY_SECONDS;
const MONTHS_IN_YEAR = 12;

const FIXED_UNIT_SECONDS: Readonly<Record<string, number>> = {
  second: 1,
  sec: 1,
  s: 1,
  minute: 60,
  min: 60,
  m: 60,
  hour: 3600,
  h: 3600,
  day: DAY_SECONDS,
  d: DAY_SECONDS,
  week: 7 * DAY_SECONDS,
};
const CALENDAR_UNIT_MONTHS: Readonly<Record<string, number>> = { month: 1, year: MONTHS_IN_YEAR };

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
const WORDS = /^(?:(\d{1,9}) *)?(second|sec|minute|min|hour|day|week|month|year)s?$/;
const COMPACT = /^(\d{1,9})([smhd])$/;
const ISO_CALENDAR = /^p(?=\d)(?:(\d{1,9})y)?(?:(\d{1,9})m)?$/;
const ISO_WEEKS = /^p(\d{1,9})w$/;
const ISO_FIXED = /^p(?=\d|t)(?:(\d{1,9})d)?(?:t(?=\d)(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?)?$/;

/** A regular expression that every period matches, for clients that validate before they send. It does not bound the period's length. */
export const PERIOD_PATTERN = [WORDS, COMPACT, ISO_CALENDAR, ISO_WEEKS, ISO_FIXED]
  .map(({ source }) => source.replace(/\\.|\[[^\]]*\]|[a-z]/g, inBothCases))
  .join('|');

/** Makes a part of a regular expression match both cases. The part is an escape, a class, or a letter. */
function inBothCases(part: string): string {
  if (part.startsWith('\\')) return part;
  return part.length === 1
    ? `[${part}${part.toUpperCase()}]`
    : part.replace(/[a-z]/g, (letter) => letter + letter.toUpperCase());
}

/** The rule that an invalid period breaks. */
type Fault = string;

/**
 * Parses a period in a form of `PERIOD_RULE`, in any case of letters. Undefined for everything else: other forms, blanks around it, blanks
 * that are not spaces, non-ASCII letters, fractions, calendar units mixed with days or times, less than 1 s or more than 366 d.
 */
export function parsePeriod(text: string): Period | undefined {
  const read = readPeriod(text);
  return typeof read === 'string' ? undefined : read;
}

/** Which rule the text breaks, as the end of a sentence about it; undefined for a period. Never repeats the text. */
export function periodFault(text: string): string | undefined {
  const read = readPeriod(text);
  return typeof read === 'string' ? read : undefined;
}

function readPeriod(text: string): Period | Fault {
  if (text.length > TEXT_LENGTH) return `it has more than ${TEXT_LENGTH} characters`;
  // Checked before case is folded, which turns the Kelvin sign into a k.
  if (!PRINTABLE_ASCII.test(text)) return 'it has characters that no period has';
  const lower = text.toLowerCase();
  const counted = WORDS.exec(lower) ?? COMPACT.exec(lower);
  if (counted !== null) return fromUnit(integer(counted[1], 1), counted[2] ?? '');
  const months = ISO_CALENDAR.exec(lower);
  if (months !== null) return calendar(integer(months[1], 0) * MONTHS_IN_YEAR + integer(months[2], 0));
  const weeks = ISO_WEEKS.exec(lower);
  if (weeks !== null) return fromUnit(integer(weeks[1], 0), 'week');
  const parts = ISO_FIXED.exec(lower);
  if (parts === null) return formFault(lower);
  const [, days, hours, minutes, seconds] = parts;
  return fixed(
    integer(days, 0) * DAY_SECONDS +
      integer(hours, 0) * 3600 +
      integer(minutes, 0) * 60 +
      integer(seconds, 0),
  );
}

function formFault(lower: string): Fault {
  if (lower !== lower.trim()) return 'it has blanks around it';
  if (/\d[.,]\d/.test(lower)) return 'its count is not a whole number';
  if (/^[-+]/.test(lower) || /p.*[-+]/.test(lower)) return 'its count has a sign';
  if (/\d{10}/.test(lower)) return 'it is longer than 366 days';
  if (/^p\d.*[ymw].*\d/.test(lower)) return 'months, years and weeks do not combine with other units';
  if (/^p/.test(lower)) return 'it is no ISO 8601 duration';
  if (/^\d+$/.test(lower)) return 'it has no unit';
  if (/^\d+ *[a-z]+$|^[a-z]+$/.test(lower)) return 'its unit is not known';
  return 'it has none of these forms';
}

/**
 * When a window of this period that opens at `openedAtMs` ends, in milliseconds since 1970. Months are counted
 * in UTC and keep the time of day; a day that the month does not have becomes its last one (31 January and one month:
 * 28 or 29 February). The script that decides computes the same instant in Lua.
 */
export function windowEndMs(openedAtMs: number, period: Period): number {
  if (period.kind === 'fixed') return openedAtMs + period.lengthMs;
  const opened = new Date(openedAtMs);
  const year = opened.getUTCFullYear();
  const month = opened.getUTCMonth() + period.months;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const dayMs = DAY_SECONDS * SECOND_MS;
  const timeOfDayMs = ((openedAtMs % dayMs) + dayMs) % dayMs;
  return Date.UTC(year, month, Math.min(opened.getUTCDate(), lastDay)) + timeOfDayMs;
}

/**
 * The period's length in whole seconds for the header `RateLimit-Policy`. A constant of the period: the draft wants one number
 * for a policy, so months count 30 days and a year 365, while the window itself follows the calendar.
 */
export function periodSeconds(period: Period): number {
  if (period.kind === 'fixed') return period.lengthMs / SECOND_MS;
  if (period.months === MONTHS_IN_YEAR) return 365 * DAY_SECONDS;
  return period.months * 30 * DAY_SECONDS;
}

function fromUnit(count: number, unit: string): Period | Fault {
  const months = CALENDAR_UNIT_MONTHS[unit];
  return months === undefined ? fixed(count * (FIXED_UNIT_SECONDS[unit] ?? 0)) : calendar(count * months);
}

function fixed(seconds: number): Period | Fault {
  if (seconds < 1) return 'it is shorter than 1 second';
  if (seconds > LONGEST_SECONDS) return 'it is longer than 366 days';
  const lengthMs = seconds * SECOND_MS;
  return { kind: 'fixed', token: String(lengthMs), lengthMs };
}

function calendar(months: number): Period | Fault {
  if (months < 1) return 'it is shorter than 1 month';
  if (months > MONTHS_IN_YEAR) return 'it is longer than 12 months';
  return { kind: 'calendar', token: `${months}mo`, months };
}

function integer(digits: string | undefined, absent: number): number {
  return digits === undefined ? absent : Number(digits);
}
