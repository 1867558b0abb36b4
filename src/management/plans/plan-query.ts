import type { ParsedUrlQuery } from 'node:querystring';
import { InvalidCursor } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { isPlanId, PLAN_ID } from '../../plans/plan-id.ts';
import type { PlanFilter } from '../../plans/plan-repository.ts';
import { isSearchText, LONGEST_SEARCH, SEARCH_RULE } from '../formats.ts';
import { readCursor, writeCursor } from '../page-cursor.ts';
import { COUNTED_PAGE_QUERY, isCounted, PAGE_QUERY, readPage } from '../page-query.ts';
import { queryParameters } from '../query-parameters.ts';

const { default: _, ...LIMIT } = PAGE_QUERY.limit;

/** The query parameters of the list of plans. */
export const PLAN_LIST_QUERY = {
  q: {
    description: `${SEARCH_RULE}: only plans with it in their id or description, in any case`,
    type: 'string',
    minLength: 1,
    maxLength: LONGEST_SEARCH,
  },
  include: {
    description: 'must be keys: how many keys are bound to each plan',
    type: 'string',
    enum: ['keys'],
  },
  count: COUNTED_PAGE_QUERY.count,
  limit: { ...LIMIT, description: `${LIMIT.description}; all plans when missing` },
  cursor: PAGE_QUERY.cursor,
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** The query parameter of a deletion. */
export const PLAN_DELETION_QUERY = {
  rebindTo: {
    description: 'must be the id of another rate limit plan, to which all keys of this one are bound',
    type: 'string',
    pattern: PLAN_ID.source,
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readValid, readWord } = queryParameters({ ...PLAN_LIST_QUERY, ...PLAN_DELETION_QUERY });

/** The part of the list that a query requests. */
export interface PlanListQuery {
  readonly filter: PlanFilter;
  /** Undefined for all plans. */
  readonly limit: number | undefined;
  readonly afterId: string | undefined;
  readonly isCounted: boolean;
  readonly hasKeys: boolean;
  /** The cursor of the page that follows a plan. */
  cursorAfter(planId: string): string;
}

/** Reads the parameters of `PLAN_LIST_QUERY`. Throws `invalid_parameter`, and `InvalidCursor` for a cursor of another filter. */
export function readPlanListQuery(query: ParsedUrlQuery): PlanListQuery {
  const { limit, cursor } = readPage(query);
  const text = readValid(query, 'q', isSearchText);
  const filter = text === undefined ? {} : { text };
  return {
    filter,
    limit: query.limit === undefined ? undefined : limit,
    afterId: cursor === undefined ? undefined : readPlace(readCursor(cursor, filter)),
    isCounted: isCounted(query),
    hasKeys: readWord(query, 'include', ['keys']) === 'keys',
    cursorAfter: (planId) => writeCursor([planId], filter),
  };
}

/** Throws `invalid_parameter` for a text that can't be the id of another plan. */
export function readRebindTo(query: ParsedUrlQuery, planId: string): string | undefined {
  return readValid(query, 'rebindTo', (text) => isPlanId(text) && text !== planId);
}

function readPlace([planId, ...rest]: readonly unknown[]): string {
  if (typeof planId === 'string' && isPlanId(planId) && rest.length === 0) return planId;
  throw new InvalidCursor();
}
