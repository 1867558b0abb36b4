import type { ParsedUrlQuery } from 'node:querystring';
import { InvalidCursor } from '../errors.ts';
import type { ResponseSchema } from './endpoint.ts';
import { readCursor, writeCursor } from './page-cursor.ts';
import { isCounted, readPage } from './page-query.ts';
import { COUNT, listOf, objectOf } from './response-schemas.ts';

/** The response with a page of a list in `field`. `plural` names the items. */
export function pageSchema(field: string, item: ResponseSchema, plural = field): ResponseSchema {
  return objectOf(
    { [field]: listOf(item) },
    {
      nextCursor: { type: 'string', description: `Present only when there are more ${plural}.` },
      total: { ...COUNT, description: `With count=true: the ${plural} on all pages.` },
    },
  );
}

/** A list of records by id, newest first. */
interface ListById<Item> {
  /** At most `limit` items, only those older than `beforeId`. */
  readonly list: (page: { readonly limit: number; readonly beforeId?: string }) => Promise<readonly Item[]>;
  readonly count: () => Promise<number>;
  readonly isId: (text: string) => boolean;
  readonly idOf: (item: Item) => string;
  /** What all pages of the list have in common; missing = nothing. A JSON value. */
  readonly filter?: object;
}

/** A page of a list. */
interface ListPage<Item> {
  readonly items: readonly Item[];
  /** The other fields of the response. */
  readonly about: { readonly nextCursor: string | undefined; readonly total: number | undefined };
}

/** Reads the page that a query with `COUNTED_PAGE_QUERY` requests. Throws `invalid_parameter`, and `InvalidCursor` for one of another list. */
export async function readListPage<Item>(
  query: ParsedUrlQuery,
  { list, count, isId, idOf, filter = {} }: ListById<Item>,
): Promise<ListPage<Item>> {
  const { limit, cursor } = readPage(query);
  // Before the list is read: nothing would handle a rejection of that if this throws.
  const isWithTotal = isCounted(query);
  const before = cursor === undefined ? {} : { beforeId: readIdCursor(cursor, filter, isId) };
  const [found, total] = await Promise.all([
    // One more than requested shows whether there is a next page.
    list({ limit: limit + 1, ...before }),
    isWithTotal ? count() : undefined,
  ]);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  const nextCursor = hasMore ? writeCursor([idOf(last)], filter) : undefined;
  return { items, about: { nextCursor, total } };
}

/** The id in a cursor. Throws `InvalidCursor` if it is for another query. */
export function readIdCursor(cursor: string, query: object, isId: (text: string) => boolean): string {
  const [id] = readCursor(cursor, query);
  if (typeof id === 'string' && isId(id)) return id;
  throw new InvalidCursor();
}
