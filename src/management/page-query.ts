import type { ParsedUrlQuery } from 'node:querystring';
import type { FieldSchema } from '../http/body-schema.ts';
import { queryParameters } from './query-parameters.ts';

const LONGEST_PAGE = 1000;

/** The query parameters of a paginated list. */
export const PAGE_QUERY = {
  limit: {
    description: 'must be an integer from 1 to 1000',
    type: 'integer',
    minimum: 1,
    maximum: LONGEST_PAGE,
    default: LONGEST_PAGE,
  },
  cursor: { description: 'must be the nextCursor of an earlier response', type: 'string' },
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** The query parameters of a paginated list that can show its total. */
export const COUNTED_PAGE_QUERY = {
  count: {
    description: 'must be true or false: whether the response has the total of all pages',
    type: 'string',
    enum: ['true', 'false'],
    default: 'false',
  },
  ...PAGE_QUERY,
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { invalid, readWord } = queryParameters(COUNTED_PAGE_QUERY);

/** The requested part of a list. */
export interface Page {
  readonly limit: number;
  /** Missing for the first page. */
  readonly cursor?: string;
}

/**
 * Reads the parameters of `PAGE_QUERY`. Throws `invalid_parameter` for a bad or repeated one. Whether the cursor is valid, the list
 * itself checks.
 */
export function readPage({ limit, cursor }: ParsedUrlQuery): Page {
  return { limit: readLimit(limit), ...readCursor(cursor) };
}

/** Whether the total is requested. Throws `invalid_parameter`. */
export function isCounted(query: ParsedUrlQuery): boolean {
  return readWord(query, 'count', COUNTED_PAGE_QUERY.count.enum) === 'true';
}

function readLimit(value: string | string[] | undefined): number {
  if (value === undefined) return LONGEST_PAGE;
  const limit = typeof value === 'string' && /^[1-9]\d{0,3}$/.test(value) ? Number(value) : Number.NaN;
  if (limit <= LONGEST_PAGE) return limit;
  throw invalid('limit');
}

function readCursor(value: string | string[] | undefined): { readonly cursor?: string } {
  if (value === undefined) return {};
  if (typeof value === 'string') return { cursor: value };
  throw invalid('cursor');
}
