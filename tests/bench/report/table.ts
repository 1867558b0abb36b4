import type { Spread } from '../measure/statistics.ts';

/** A number for a table; a dash where there is none. */
export function decimal(value: number, digits = 1): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '–';
}

/** The median, and the quartiles. */
export function factor({ median, low, high }: Spread): string {
  return `${decimal(median, 2)} (${decimal(low, 2)}–${decimal(high, 2)})`;
}

/** Writes a figure with its name and unit. */
export function printFigure(name: string, value: number, unit: string): void {
  const text = value.toLocaleString('en', { maximumFractionDigits: 2 });
  process.stdout.write(`${name.padEnd(58)} ${text.padStart(12)} ${unit}\n`);
}

/** A table in Markdown. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
