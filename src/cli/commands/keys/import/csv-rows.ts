import { Readable } from 'node:stream';
import { CsvError, type InfoRecord, parse } from 'csv-parse';
import { EXACT_NUMBER_RULE, inexactNumberIn } from '../../../../platform/text/exact-numbers.ts';
import { fieldName } from '../../../../platform/text/field-name.ts';
import { parsedJson } from '../../../../platform/text/parsed-json.ts';
import { CommandFault } from '../../../command-fault.ts';
import type { KeyToImport, Row } from './row.ts';

/** What is wrong with a cell. The message follows the name of its column. */
class CellFault extends Error {}

/** The parser of each column's cells. */
const COLUMNS: Readonly<Record<string, (cell: string) => unknown>> = {
  name: text,
  secret: text,
  secretHash: (cell) => ({ algorithm: 'sha256', value: cell }),
  rateLimitId: text,
  enabled: boolean,
  expiresAt: text,
  externalId: text,
  tags: list,
  metadata: json,
  overrides: json,
  allowedIps: list,
  allowedOrigins: list,
  selfService: list,
};

/** More than any key needs. After a quote that is never closed, it keeps the rest of the file out of memory. */
const MAX_RECORD_BYTES = 1024 * 1024;

interface ParsedRecord {
  readonly record: readonly string[];
  readonly info: InfoRecord;
  readonly raw: string;
}

/**
 * The rows of CSV (RFC 4180) whose first record names the columns, with line ends of any system. A wrong cell is a fault of its row; a
 * wrong quote ends the import, because the end of the row is unknown.
 */
export async function* csvRows(
  chunks: AsyncIterable<string>,
  onHeader: (header: string) => void,
): AsyncGenerator<Row> {
  const parser = parse({
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
    info: true,
    raw: true,
    max_record_size: MAX_RECORD_BYTES,
  });
  const source = Readable.from(chunks);
  source.on('error', (error) => parser.destroy(error));
  let columns: readonly string[] | undefined;
  try {
    for await (const { record, info, raw } of source.pipe(parser) as AsyncIterable<ParsedRecord>) {
      if (columns === undefined) {
        columns = checkedColumns(record);
        onHeader(columns.join(','));
        continue;
      }
      const number = info.records + info.empty_lines;
      // The parser counts the line ends of blank lines before a row as part of the row.
      yield { number, text: raw.replaceAll(/^[\r\n]+|[\r\n]+$/g, ''), content: contentOf(record, columns) };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const what =
      error.code === 'CSV_MAX_RECORD_SIZE'
        ? 'a row has more than 1 MiB'
        : 'a quote is in a wrong place, or is not closed';
    throw new CommandFault('usage', `The file is not valid CSV: near line ${String(error.lines)}, ${what}.`, {
      cause: error,
    });
  } finally {
    source.destroy();
  }
}

function checkedColumns(names: readonly string[]): readonly string[] {
  const unknown = names.filter((name) => !Object.hasOwn(COLUMNS, name));
  if (unknown.length > 0)
    throw new CommandFault(
      'usage',
      `The first row must name the columns, and there is none called ${unknown.map((name) => JSON.stringify(shown(name))).join(', ')}. Those that there are: ${Object.keys(COLUMNS).join(', ')}.`,
    );
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new CommandFault('usage', `The first row names the column ${twice} twice.`);
  return names;
}

/** Shortens a column name: if the file has no header, its first row has secrets. */
function shown(name: string): string {
  return name.length > 16 ? `${name.slice(0, 8)}…` : name;
}

function contentOf(cells: readonly string[], columns: readonly string[]): Row['content'] {
  if (cells.length !== columns.length) {
    const message = `has ${cells.length} cells where the first row has ${columns.length}`;
    return { fault: { code: 'invalid_row', field: null, message } };
  }
  const fields: Record<string, unknown> = {};
  for (const [index, column] of columns.entries()) {
    const cell = cells[index] ?? '';
    if (cell === '') continue;
    try {
      fields[column] = COLUMNS[column]?.(cell);
    } catch (error) {
      if (!(error instanceof CellFault)) throw error;
      return { fault: { code: 'invalid_row', field: column, message: error.message } };
    }
  }
  return { key: fields as KeyToImport };
}

function text(cell: string): string {
  return cell;
}

function boolean(cell: string): boolean {
  if (/^true$/i.test(cell)) return true;
  if (/^false$/i.test(cell)) return false;
  throw new CellFault('must be true or false');
}

function list(cell: string): readonly string[] {
  return cell.split(/[\s,]+/).filter((part) => part !== '');
}

function json(cell: string): unknown {
  const value = parsedJson(cell);
  if (value === undefined) throw new CellFault('must be JSON');
  const inexact = inexactNumberIn(cell);
  if (inexact !== undefined) throw new CellFault(`${fieldName(inexact)} ${EXACT_NUMBER_RULE}`.trimStart());
  return value;
}
