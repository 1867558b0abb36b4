import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { csvRecord } from '../../platform/text/csv.ts';
import { CommandFault } from '../command-fault.ts';
import type { Terminal } from '../terminal.ts';
import { type Cell, headingOf, type Listing } from './columns.ts';
import { escapeControls, propertyLines, shownCell, type TableOptions, tableLines } from './table.ts';

const FORMATS = ['table', 'json', 'ndjson', 'yaml', 'csv', 'id'] as const;
type Format = (typeof FORMATS)[number];

/** Moves to the start of the line and clears it. */
const CLEAR_LINE = '\r\u001b[K';

export interface OutputOptions {
  readonly output?: Format;
  readonly headers: boolean;
}

/** Adds the options of a command's output. */
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

/** Writes the results of a command: data to standard output in the requested format, everything else to standard error. */
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

  /** Writes a list. CSV, NDJSON and ids are written page by page; the other formats need all pages first. */
  async list<T>(listing: Listing<T>, pages: AsyncIterable<readonly T[]>): Promise<void> {
    if (this.format === 'table' || this.format === 'yaml' || this.format === 'json') {
      const items: T[] = [];
      for await (const page of pages) items.push(...page);
      return this.report(listing, items, items);
    }
    this.csvHeader(listing);
    for await (const page of pages) for (const item of page) this.record(listing, item);
  }

  /** Writes one object. */
  async item<T>(listing: Listing<T>, item: T): Promise<void> {
    if (this.format !== 'table') return this.report(listing, [item], item);
    const cells = listing.columns.map(({ toCell }) => toCell(item));
    for (const line of propertyLines(listing.columns.map(headingOf), cells, this.#table)) this.#line(line);
  }

  /** Writes a list that is a part of `whole`. JSON and YAML show `whole` instead. */
  async report<T>(listing: Listing<T>, items: readonly T[], whole: unknown): Promise<void> {
    if (this.format === 'json') return this.#line(printable(JSON.stringify(whole, null, 2)));
    if (this.format === 'yaml') {
      // The import takes a fifth of the start time, and only this format needs it.
      const { Document, visit } = await import('yaml');
      // Texts that YAML 1.1 takes for something else, such as `no` and `12:30`, are in quotes.
      const document = new Document(whole, { compat: 'yaml-1.1' });
      // Only a text in double quotes can have escapes, which are those of JSON.
      visit(document, {
        Scalar: (_key, node) => {
          if (typeof node.value === 'string' && CONTROLS.test(node.value)) node.type = 'QUOTE_DOUBLE';
        },
      });
      this.#terminal.stdout.write(printable(document.toString()));
      return;
    }
    if (this.format === 'table') {
      const rows = items.map((item) => listing.columns.map(({ toCell }): Cell => toCell(item)));
      const options = listing.isWhole ? { ...this.#table, width: undefined } : this.#table;
      for (const line of tableLines(listing.columns.map(headingOf), rows, options)) this.#line(line);
      return;
    }
    this.csvHeader(listing);
    for (const item of items) this.record(listing, item);
  }

  /** Writes a text of the gateway as it arrives, without holding it. Throws a `CommandFault` if its end does not come. */
  async stream(chunks: AsyncIterable<string>): Promise<void> {
    const { stdout } = this.#terminal;
    try {
      for await (const chunk of chunks) if (!stdout.write(printable(chunk))) await once(stdout, 'drain');
    } catch (error) {
      const message = 'The gateway did not send everything: the output is incomplete.';
      throw new CommandFault('unavailable', message, { cause: error });
    }
  }

  /** Writes the names of the columns, if the format is CSV: for the records that follow. */
  csvHeader<T>({ columns }: Listing<T>): void {
    if (this.format === 'csv' && this.#table.headers) this.#line(csvRecord(columns.map(({ name }) => name)));
  }

  /** Writes one object of an endless list as a line, also in JSON and YAML. */
  record<T>({ columns, idOf }: Listing<T>, item: T): void {
    const cells = columns.map(({ toCell }): Cell => toCell(item));
    if (this.format === 'id') this.#rawLine(idOf(item));
    else if (this.format === 'csv') this.#rawLine(csvRecord(cells));
    // Columns are not aligned: the width of later rows is unknown.
    else if (this.format === 'table') this.#line(cells.map(shownCell).join('  '));
    else this.#line(printable(JSON.stringify(item)));
  }

  /** A sentence for the person at the terminal. */
  note(sentence: string): void {
    this.endProgress();
    this.#terminal.stderr.write(`${sentence}\n`);
  }

  /** Shows the progress of long work, in place of the progress shown before. Only on a terminal. */
  progress(sentence: string): void {
    if (!this.#terminal.stderr.isTTY) return;
    this.#terminal.stderr.write(`${CLEAR_LINE}${sentence}`);
    this.#hasProgress = true;
  }

  endProgress(): void {
    if (this.#hasProgress) this.#terminal.stderr.write(CLEAR_LINE);
    this.#hasProgress = false;
  }

  /** Files and pipes get the text as it is; a terminal would obey its control characters. */
  #rawLine(text: string): void {
    this.#line(this.#terminal.stdout.isTTY ? escapeControls(text) : text);
  }

  #line(text: string): void {
    this.#terminal.stdout.write(`${text}\n`);
  }
}

/** Characters that could control the terminal and that `JSON.stringify` leaves as they are. */
const CONTROLS = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** Escapes `CONTROLS`. */
function printable(json: string): string {
  return json.replace(
    new RegExp(CONTROLS, 'g'),
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
