import type { Command } from 'commander';
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

/** The default: one or two screens. */
const DEFAULT_LIMIT = 100;

/** The first page, or all with `--all`. If there are more, a note says how to read on. */
export async function* pagesOf<T>(
  { all, limit, cursor }: PageOptions,
  output: Output,
  read: (
    query: PageQuery,
  ) => Promise<{ readonly items: readonly T[]; readonly nextCursor?: string | undefined }>,
): AsyncGenerator<readonly T[]> {
  let next = cursor;
  do {
    const size = limit ?? (all ? undefined : DEFAULT_LIMIT);
    const page = await read({
      ...(size !== undefined && { limit: size }),
      ...(next !== undefined && { cursor: next }),
    });
    yield page.items;
    next = page.nextCursor;
  } while (all && next !== undefined);
  if (next !== undefined) output.note(`There is more: --all shows it, or --cursor ${next} the next page.`);
}
