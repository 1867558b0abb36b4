/** The date of an instant, `YYYY-MM-DD`, in the time zone of the browser: as fields of dates have it. */
export function dateText(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
