const FORMATS = {
  time: { weekday: 'short', hour: '2-digit', minute: '2-digit' },
  date: { dateStyle: 'medium' },
} as const;

/** The full name of a bucket, "Mon, 14:00" or "3 Feb 2026", in a time zone; by default in the browser's. */
export function bucketName(start: number, labels: 'time' | 'date', timeZone?: string): string {
  const format = { ...FORMATS[labels], ...(timeZone !== undefined && { timeZone }) };
  return new Intl.DateTimeFormat(undefined, format).format(start);
}
