const { timeZone: name } = Intl.DateTimeFormat().resolvedOptions();

/** The IANA name of the browser's time zone, such as `Europe/Berlin`; UTC where it is not known. */
export const timeZone = name === undefined || name === 'Etc/Unknown' ? 'UTC' : name;

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** The instant to the second, with the name of the time zone. */
export function exactTime(at: number): string {
  return `${exact.format(at)} (${timeZone})`;
}
