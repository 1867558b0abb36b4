import { LOCALE } from '../../format/locale.ts';

const FORMATS = {
  time: { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  date: { dateStyle: 'medium' },
} as const;
const HOUR_MS = 3_600_000;

/**
 * The full name of a bucket, "Mon, 3 Feb, 14:00" or "3 Feb 2026", in a time zone; by default in the browser's. An hour that comes twice, because
 * clocks go back, has its offset from UTC as well.
 */
export function bucketName(start: number, labels: 'time' | 'date', timeZone?: string): string {
  const options = { ...FORMATS[labels], ...(timeZone !== undefined && { timeZone }) };
  const { format } = new Intl.DateTimeFormat(LOCALE, options);
  const name = format(start);
  const comesTwice =
    labels === 'time' && (format(start - HOUR_MS) === name || format(start + HOUR_MS) === name);
  if (!comesTwice) return name;
  return new Intl.DateTimeFormat(LOCALE, { ...options, timeZoneName: 'shortOffset' }).format(start);
}
