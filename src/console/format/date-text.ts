/** The form of a date. */
export const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** The date of an instant in the time zone of the browser, `YYYY-MM-DD` as in date fields. */
export function dateText(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The first instant of the date `days` after `text`, in the time zone of the browser. */
export function dateStart(text: string, days: number): number {
  const [year, month, day] = parts(text);
  return new Date(year, month - 1, day + days).getTime();
}

/** The first instant of the date `days` after `text`, in UTC. */
export function utcDateStart(text: string, days: number): number {
  const [year, month, day] = parts(text);
  return Date.UTC(year, month - 1, day + days);
}

function parts(text: string): readonly [number, number, number] {
  const [year = 0, month = 1, day = 1] = text.split('-').map(Number);
  return [year, month, day];
}
