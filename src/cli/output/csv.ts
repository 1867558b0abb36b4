import type { Cell } from './columns.ts';

/** A record of RFC 4180, without its line end. Texts that a spreadsheet would run as a formula begin with `'`. */
export function csvRecord(cells: readonly Cell[]): string {
  return cells.map(field).join(',');
}

function field(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  const text = typeof cell === 'string' && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
