const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** An instant in the words and the time zone of the reader, to the second. */
export function instantInWords(instant: string): string {
  const date = new Date(instant);
  return Number.isNaN(date.getTime()) ? instant : FORMAT.format(date);
}
