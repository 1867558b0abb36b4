/** A value of a CSV file. Null and undefined are empty cells. */
export type CsvValue = string | number | boolean | null | undefined;

/** The length of a chunk, in characters. */
const CHUNK_LENGTH = 16_384;
/** What begins a formula for some spreadsheet, as OWASP lists it: the full-width forms of the characters in East Asian locales. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
/** The separators of other CSV dialects are quoted too: their readers would see cells, and formulas, that are none. */
const NEEDS_QUOTES = /[",;\t\r\n]/;

/** A CSV file (RFC 4180) in chunks, beginning with the header row. Texts that a spreadsheet would run as a formula get a `'` in front. */
export function* csvFile(
  columns: readonly string[],
  rows: Iterable<readonly CsvValue[]>,
): Generator<string, void, undefined> {
  yield csvRow(columns);
  yield* csvRows(rows);
}

/** Rows without a header, in chunks, to continue a file. */
export function* csvRows(rows: Iterable<readonly CsvValue[]>): Generator<string, void, undefined> {
  let text = '';
  for (const row of rows) {
    text += csvRow(row);
    if (text.length < CHUNK_LENGTH) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

/** A row without its line end. */
export function csvRecord(values: readonly CsvValue[]): string {
  return values.map(csvCell).join(',');
}

function csvRow(values: readonly CsvValue[]): string {
  return `${csvRecord(values)}\r\n`;
}

function csvCell(value: CsvValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
