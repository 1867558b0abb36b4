import { type Command, Option } from 'commander';
import { csvRecord } from '../../platform/text/csv.ts';
import type { Terminal } from '../terminal.ts';
import { type Cell, headingOf, type Listing } from './columns.ts';
import { propertyLines, shownCell, type TableOptions, tableLines } from './table.ts';

const FORMATS = ['table', 'json', 'ndjson', 'yaml', 'csv', 'id'] as const;
type Format = (typeof FORMATS)[number];

/** To the start of the line, which is made empty. */
const CLEAR_LINE = '\r\u001b[K';

export interface OutputOptions {
  readonly output?: Format;
  readonly headers: boolean;
}

/** Gives a command the options of its output. */
export function writesData(command: Command): Command {
  return command
    .addOption(
      new Option(
        '-o, --output <format>',
        'table on a terminal, otherwise json, where it is not given',
      ).choices(FORMATS),
    )
    .option('--no-headers', 'leave the names of the columns out of a table and of CSV');
}

/** Writes what a command found: data to standard output in the format that was asked for, all else to standard error. */
export class Output {
  readonly format: Format;
  readonly #terminal: Terminal;
  readonly #table: TableOptions;
  #hasProgress = false;

  constructor({ output, headers }: OutputOptions, terminal: Terminal) {
    this.format = output ?? (terminal.stdout.isTTY ? 'table' : 'json');
    this.#terminal = terminal;
    const { environment, stdout } = terminal;
    const columns = Number(environment.COLUMNS);
    this.#table = {
      headers,
      width: stdout.isTTY ? stdout.columns || 80 : columns > 0 ? columns : undefined,
      isStyled: stdout.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb',
    };
  }

  /** A list, page by page. Only a table waits for the last page: its columns are as wide as their widest cell. */
  async list<T>(listing: Listing<T>, pages: AsyncIterable<readonly T[]>): Promise<void> {
    if (this.format === 'table' || this.format === 'yaml' || this.format === 'json') {
      const items: T[] = [];
      for await (const page of pages) items.push(...page);
      return this.report(listing, items, items);
    }
    this.#csvHeader(listing);
    for await (const page of pages) for (const item of page) this.record(listing, item);
  }

  /** One object. */
  async item<T>(listing: Listing<T>, item: T): Promise<void> {
    if (this.format !== 'table') return this.report(listing, [item], item);
    const cells = listing.columns.map(({ toCell }) => toCell(item));
    for (const line of propertyLines(listing.columns.map(headingOf), cells, this.#table)) this.#line(line);
  }

  /** A list that is a part of `whole`, which JSON and YAML show as it is. */
  async report<T>(listing: Listing<T>, items: readonly T[], whole: unknown): Promise<void> {
    if (this.format === 'json') return this.#line(printable(JSON.stringify(whole, null, 2)));
    if (this.format === 'yaml') {
      // A fifth of the time of a start, which only this format needs.
      const { stringify } = await import('yaml');
      this.#terminal.stdout.write(stringify(whole));
      return;
    }
    if (this.format === 'table') {
      const rows = items.map((item) => listing.columns.map(({ toCell }): Cell => toCell(item)));
      for (const line of tableLines(listing.columns.map(headingOf), rows, this.#table)) this.#line(line);
      return;
    }
    this.#csvHeader(listing);
    for (const item of items) this.record(listing, item);
  }

  /** One object of a list that has no end, as a line; JSON and YAML have it on a line, too. */
  record<T>({ columns, idOf }: Listing<T>, item: T): void {
    const cells = columns.map(({ toCell }): Cell => toCell(item));
    if (this.format === 'id') this.#line(idOf(item));
    else if (this.format === 'csv') this.#line(csvRecord(cells));
    // Nothing is aligned: what comes is not known yet.
    else if (this.format === 'table') this.#line(cells.map(shownCell).join('  '));
    else this.#line(printable(JSON.stringify(item)));
  }

  /** A sentence for the person at the terminal. */
  note(sentence: string): void {
    this.endProgress();
    this.#terminal.stderr.write(`${sentence}\n`);
  }

  /** How far a long work is, in the place of what was said of it last; only where a person looks on. */
  progress(sentence: string): void {
    if (!this.#terminal.stderr.isTTY) return;
    this.#terminal.stderr.write(`${CLEAR_LINE}${sentence}`);
    this.#hasProgress = true;
  }

  endProgress(): void {
    if (this.#hasProgress) this.#terminal.stderr.write(CLEAR_LINE);
    this.#hasProgress = false;
  }

  #csvHeader<T>({ columns }: Listing<T>): void {
    if (this.format === 'csv' && this.#table.headers) this.#line(csvRecord(columns.map(({ name }) => name)));
  }

  #line(text: string): void {
    this.#terminal.stdout.write(`${text}\n`);
  }
}

/** JSON leaves characters as they are by which a text could speak to a terminal. */
function printable(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
