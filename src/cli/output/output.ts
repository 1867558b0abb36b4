import { CommandFault } from '../command-fault.ts';
import type { Terminal } from '../terminal.ts';
import type { Cell, Listing } from './columns.ts';
import { csvRecord } from './csv.ts';
import { propertyLines, type TableOptions, tableLines } from './table.ts';

const FORMATS = ['table', 'json', 'ndjson', 'yaml', 'csv', 'id'] as const;
type Format = (typeof FORMATS)[number];

export interface OutputOptions {
  readonly output?: string;
  readonly headers: boolean;
}

/** Writes what a command found: data to standard output in the format that was asked for, all else to standard error. */
export class Output {
  readonly format: Format;
  readonly #terminal: Terminal;
  readonly #table: TableOptions;

  constructor({ output, headers }: OutputOptions, terminal: Terminal) {
    const format = output ?? (terminal.stdout.isTTY ? 'table' : 'json');
    const known = FORMATS.find((each) => each === format);
    if (known === undefined)
      throw new CommandFault(
        'usage',
        `There is no output format ${format}: it is one of ${FORMATS.join(', ')}.`,
      );
    this.format = known;
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
    for await (const page of pages) for (const item of page) this.#line(this.#record(listing, item));
  }

  /** One object. */
  async item<T>(listing: Listing<T>, item: T): Promise<void> {
    if (this.format !== 'table') return this.report(listing, [item], item);
    const cells = listing.columns.map(({ toCell }) => toCell(item));
    for (const line of propertyLines(
      listing.columns.map(({ name }) => name),
      cells,
      this.#table,
    ))
      this.#line(line);
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
      for (const line of tableLines(
        listing.columns.map(({ name }) => name),
        rows,
        this.#table,
      ))
        this.#line(line);
      return;
    }
    this.#csvHeader(listing);
    for (const item of items) this.#line(this.#record(listing, item));
  }

  /** A sentence for the person at the terminal. */
  note(sentence: string): void {
    this.#terminal.stderr.write(`${sentence}\n`);
  }

  #csvHeader<T>({ columns }: Listing<T>): void {
    if (this.format === 'csv' && this.#table.headers) this.#line(csvRecord(columns.map(({ name }) => name)));
  }

  #record<T>({ columns, idOf }: Listing<T>, item: T): string {
    if (this.format === 'id') return idOf(item);
    if (this.format === 'ndjson') return printable(JSON.stringify(item));
    return csvRecord(columns.map(({ toCell }) => toCell(item)));
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
