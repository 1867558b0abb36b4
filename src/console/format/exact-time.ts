import { LOCALE } from './locale.ts';

/** The IANA name of the browser's time zone now, such as `Europe/Berlin`: a device that travels changes it. UTC where it is not known. */
export function localTimeZone(): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return timeZone === undefined || timeZone === 'Etc/Unknown' ? 'UTC' : timeZone;
}

/** The instant to the second, with the name of the time zone. */
export function exactTime(at: number): string {
  const exact = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'medium' });
  return `${exact.format(at)} (${localTimeZone()})`;
}

/** The minute of an instant, without its date. */
export function timeText(at: number): string {
  return new Intl.DateTimeFormat(LOCALE, { timeStyle: 'short' }).format(at);
}

/** The date and the minute of an instant. */
export function shortTime(at: number): string {
  return new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'short' }).format(at);
}
