import type { Spread } from '../measure/statistics.ts';

/** A number for a table; a dash where there is none. */
export function decimal(value: number, digits = 1): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '–';
}

/** The median, and the quartiles. */
export function factor({ median, low, high }: Spread): string {
  return `${decimal(median, 2)} (${decimal(low, 2)}–${decimal(high, 2)})`;
}

/** A table in Markdown. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
