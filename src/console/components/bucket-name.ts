const formats = {
  time: new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' }),
  date: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }),
} as const;

/** How a bucket of a chart is called in full: "Mon, 14:00", or "3 Feb 2026". */
export function bucketName(start: number, labels: 'time' | 'date'): string {
  return formats[labels].format(start);
}
