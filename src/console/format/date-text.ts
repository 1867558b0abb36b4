/** The form of a date. */
export const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** The date of an instant, `YYYY-MM-DD`, in the time zone of the browser: as fields of dates have it. */
export function dateText(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The first instant of a date in the time zone of the browser, or of the date some days later. */
export function dateStart(text: string, days: number): number {
  const [year, month, day] = parts(text);
  return new Date(year, month - 1, day + days).getTime();
}

/** The same in UTC. */
export function utcDateStart(text: string, days: number): number {
  const [year, month, day] = parts(text);
  return Date.UTC(year, month - 1, day + days);
}

function parts(text: string): readonly [number, number, number] {
  const [year = 0, month = 1, day = 1] = text.split('-').map(Number);
  return [year, month, day];
}
