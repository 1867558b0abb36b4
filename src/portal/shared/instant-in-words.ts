import { LOCALE } from '../../console/format/locale.ts';

const STYLE = { dateStyle: 'medium', timeStyle: 'long' } as const;

/** An instant in the words and the present time zone of the reader, to the second. */
export function instantInWords(instant: string): string {
  const date = new Date(instant);
  return Number.isNaN(date.getTime()) ? instant : new Intl.DateTimeFormat(LOCALE, STYLE).format(date);
}
