import type { Command } from 'commander';
import { definedFields } from '../../platform/defined-fields.ts';
import { wholeNumber } from '../option-values.ts';
import type { Output } from '../output/output.ts';

export interface PageOptions {
  readonly all?: boolean;
  readonly limit?: number;
  readonly cursor?: string;
}

/** Adds the options of a list. */
export function paged(command: Command): Command {
  return command
    .option('--all', 'follow the pages to the last one')
    .option('--limit <count>', 'most entries of a page', wholeNumber)
    .option('--cursor <cursor>', 'read on from where a list ended');
}

/** The part of a page's query that chooses the page. */
type PageQuery = { readonly limit?: number; readonly cursor?: string };

interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string | undefined;
  /** The span of the query. The cursor belongs to it, but by the next command an option like `--from 7d` means another one. */
  readonly span?: Span;
}

/** The ends of a span, as the interface accepts them. */
interface Span {
  readonly from?: string;
  readonly to?: string;
}

/** The default: one or two screens. */
const DEFAULT_LIMIT = 100;

/** The first page, or all with `--all`. If there are more, a note says how to read on. */
export async function* pagesOf<T>(
  { all, limit, cursor }: PageOptions,
  output: Output,
  read: (query: PageQuery) => Promise<Page<T>>,
): AsyncGenerator<readonly T[]> {
  let next = cursor;
  let span: Span | undefined;
  do {
    const size = limit ?? (all ? undefined : DEFAULT_LIMIT);
    const page = await read(definedFields({ limit: size, cursor: next }));
    yield page.items;
    next = page.nextCursor;
    span = page.span;
  } while (all && next !== undefined);
  if (next !== undefined)
    output.note(`There is more: --all shows it, or ${optionsOf(next, span)} the next page.`);
}

/** The options that replace those of a command to show its next page. */
function optionsOf(cursor: string, { from, to }: Span = {}): string {
  const ends = [...(from === undefined ? [] : ['--from', from]), ...(to === undefined ? [] : ['--to', to])];
  return [...ends, '--cursor', cursor].join(' ');
}
