const whole = new Intl.NumberFormat();
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const SHORT_FROM = 1_000_000;
const share = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** "12,345", as the reader's locale has it. */
export function formatNumber(value: number): string {
  return whole.format(value);
}

/** "12,345", and "1.2M" from a million: for axes and tight places. The same style everywhere below that. */
export function formatShort(value: number): string {
  return Math.abs(value) < SHORT_FROM ? whole.format(value) : short.format(value);
}

/** "12.3%" of 0.123. */
export function formatShare(value: number): string {
  return share.format(value);
}

/** "1 key", "312 keys". */
export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${whole.format(count)} ${count === 1 ? singular : plural}`;
}
