import { styleText } from 'node:util';
import truncatedWidth from 'fast-string-truncated-width';
import type { Cell } from './columns.ts';

export interface TableOptions {
  readonly headers: boolean;
  /** Columns of the terminal that a line may fill; undefined = no limit. */
  readonly width: number | undefined;
  readonly isStyled: boolean;
}

const GAP = '  ';
/** The least width to which a table's columns are narrowed. */
const NARROWEST = 6;
const ELLIPSIS = '…';
const ELLIPSIS_WIDTH = { ellipsis: ELLIPSIS, ellipsisWidth: 1 };

/** Lines of aligned columns; numbers to the right. A cell that does not fit ends with an ellipsis. */
export function tableLines(
  names: readonly string[],
  rows: readonly (readonly Cell[])[],
  { headers, width, isStyled }: TableOptions,
): readonly string[] {
  const cells = rows.map((row) => row.map(shownCell));
  const widths = fitted(
    names.map((name, index) =>
      cells.reduce((widest, row) => Math.max(widest, widthOf(row[index] ?? '')), headers ? name.length : 0),
    ),
    width,
  );
  const isNumber = names.map((_, index) => {
    const kinds = new Set(rows.flatMap((row) => (row[index] == null ? [] : [typeof row[index]])));
    return kinds.size === 1 && kinds.has('number');
  });
  const line = (row: readonly string[]) =>
    row
      .map((cell, index) => padded(cell, widths[index] ?? 0, isNumber[index] === true))
      .join(GAP)
      .trimEnd();
  const head = line(names.map((name) => name.toUpperCase()));
  return [
    ...(headers ? [isStyled ? styleText('bold', head, { validateStream: false }) : head] : []),
    ...cells.map(line),
  ];
}

/** The lines of one object: a name and its value each. */
export function propertyLines(
  names: readonly string[],
  values: readonly Cell[],
  { isStyled }: TableOptions,
): readonly string[] {
  const width = names.reduce((widest, name) => Math.max(widest, name.length), 0);
  return names.map((name, index) => {
    const label = `${name.toUpperCase()}:`.padEnd(width + 1);
    const styled = isStyled ? styleText('bold', label, { validateStream: false }) : label;
    return `${styled}${GAP}${shownCell(values[index])}`.trimEnd();
  });
}

/** The text of a cell, with `-` for an empty one and its control characters escaped. */
export function shownCell(cell: Cell): string {
  if (cell === null || cell === undefined || cell === '') return '-';
  return escapeControls(String(cell));
}

/** Escapes control characters, which could control the terminal: names and paths come from others. */
export function escapeControls(text: string): string {
  return text.replace(
    /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

function widthOf(text: string): number {
  return truncatedWidth(text).width;
}

function padded(cell: string, width: number, isNumber: boolean): string {
  const { index, ellipsed, width: used } = truncatedWidth(cell, { limit: width, ...ELLIPSIS_WIDTH });
  const text = ellipsed ? `${cell.slice(0, index)}${ELLIPSIS}` : cell.slice(0, index);
  // `used` is the width of the text without the ellipsis.
  const blanks = ' '.repeat(Math.max(0, width - used - (ellipsed ? 1 : 0)));
  return isNumber ? blanks + text : text + blanks;
}

/** Narrows the widest column step by step until the line fits. The first keeps its width: a cut-off id is useless. */
function fitted(widths: readonly number[], total: number | undefined): readonly number[] {
  const [first = 0, ...others] = widths;
  let excess = total === undefined ? 0 : sum(widths) + GAP.length * (widths.length - 1) - total;
  while (excess > 0) {
    const widest = Math.max(...others);
    if (widest <= NARROWEST) break;
    others[others.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
  return [first, ...others];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
