import type { ParsedUrlQuery } from 'node:querystring';
import { InvalidCursor } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { isExternalId, MAX_EXTERNAL_ID } from '../../keys/external-id.ts';
import { isKeyId } from '../../keys/key-id.ts';
import {
  KEY_SORTS,
  KEY_STATUSES,
  type KeyFilter,
  type KeyOrder,
  type KeyPosition,
  type KeySelection,
  type KeySort,
  SORT_ORDERS,
  type SortOrder,
} from '../../keys/key-list.ts';
import { isTag, TAG, TAG_RULE } from '../../keys/key-tags.ts';
import { MAX_TAGS } from '../../permissions/visible-records.ts';
import { isPlanId, PLAN_ID } from '../../plans/plan-id.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { isStorable } from '../../platform/text/storable-text.ts';
import { INSTANT_RULE, isSearchText, LONGEST_SEARCH, queryInstant, SEARCH_RULE } from '../formats.ts';
import { isInstant, readCursor, writeCursor } from '../page-cursor.ts';
import { COUNTED_PAGE_QUERY, isCounted, readPage } from '../page-query.ts';
import { queryParameters } from '../query-parameters.ts';

const INCLUDES = ['usage', 'limits'] as const;

/** Further fields that an item of the list may have. */
type KeyInclude = (typeof INCLUDES)[number];

/** The longest page with `include`, which costs more for each key. */
const LONGEST_PAGE_WITH_MORE = 200;

/** The query parameters that filter keys by their plan, tags and owner. */
export const KEY_FILTER_QUERY = {
  rateLimitId: {
    description: 'must be the id of a rate limit plan: only keys that are bound to it',
    type: 'string',
    pattern: PLAN_ID.source,
  },
  tag: {
    description: `must be a tag ${TAG_RULE}: only keys that have it`,
    type: 'string',
    pattern: TAG.source,
  },
  externalId: {
    description: `must be a string of 1 to ${MAX_EXTERNAL_ID} characters: only keys of this owner`,
    type: 'string',
    maxLength: MAX_EXTERNAL_ID,
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** The query parameters of the list of keys. */
export const KEY_LIST_QUERY = {
  q: {
    description: `${SEARCH_RULE}: only keys with it in their name, externalId, id or secretHint, in any case`,
    type: 'string',
    minLength: 1,
    maxLength: LONGEST_SEARCH,
  },
  status: {
    description: `must be one or more of ${KEY_STATUSES.join(', ')}, separated by commas: only keys in any of these states`,
    type: 'string',
    examples: ['disabled,expired'],
  },
  ...KEY_FILTER_QUERY,
  tag: {
    description: `${KEY_FILTER_QUERY.tag.description}; repeated: with all of them`,
    type: 'array',
    maxItems: MAX_TAGS,
    items: { description: `must be a tag ${TAG_RULE}`, type: 'string', pattern: TAG.source },
  },
  createdAfter: {
    description: `${INSTANT_RULE}: only keys that were created then or later`,
    type: 'string',
    format: 'query-instant',
  },
  createdBefore: {
    description: `${INSTANT_RULE}: only keys that were created before`,
    type: 'string',
    format: 'query-instant',
  },
  expiresBefore: {
    description: `${INSTANT_RULE}: only keys that expire before, or have expired`,
    type: 'string',
    format: 'query-instant',
  },
  unusedSince: {
    description: `${INSTANT_RULE}: only keys that were never used, or last before`,
    type: 'string',
    format: 'query-instant',
  },
  sort: {
    description: `must be one of ${KEY_SORTS.join(', ')}`,
    type: 'string',
    enum: KEY_SORTS,
    default: 'createdAt',
  },
  order: {
    description: `must be ${SORT_ORDERS.join(' or ')}; when missing, desc by createdAt and lastUsedAt, asc by name and expiresAt`,
    type: 'string',
    enum: SORT_ORDERS,
  },
  include: {
    description: `must be one or more of ${INCLUDES.join(', ')}, separated by commas: what each key is shown with; "limit" is then at most ${LONGEST_PAGE_WITH_MORE}`,
    type: 'string',
    examples: ['usage,limits'],
  },
  ...COUNTED_PAGE_QUERY,
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readParsed, readValid, readWord, invalid } = queryParameters(KEY_LIST_QUERY);

/** The part of the list that a query requests. */
export interface KeyListQuery {
  readonly selection: KeySelection;
  readonly includes: ReadonlySet<KeyInclude>;
  readonly isCounted: boolean;
  /** The cursor of the page that follows a position. */
  cursorAfter(position: KeyPosition): string;
}

const NATURAL_ORDER: Readonly<Record<KeySort, SortOrder>> = {
  createdAt: 'desc',
  name: 'asc',
  lastUsedAt: 'desc',
  expiresAt: 'asc',
};

/** Reads the parameters of `KEY_LIST_QUERY`. Throws `invalid_parameter`, and `InvalidCursor` for a cursor of another sort or filter. */
export function readKeyListQuery(query: ParsedUrlQuery): KeyListQuery {
  const includes = new Set(readWords(query, 'include', INCLUDES));
  const { limit, cursor } = readPageWith(query, includes);
  const filter = readKeyFilter(query);
  const sort = readWord(query, 'sort', KEY_SORTS) ?? 'createdAt';
  const order = readWord(query, 'order', SORT_ORDERS) ?? NATURAL_ORDER[sort];
  const identity = { filter, sort, order };
  const after = cursor === undefined ? {} : { after: readPosition(readCursor(cursor, identity), sort) };
  return {
    selection: { ...identity, limit, ...after },
    includes,
    isCounted: isCounted(query),
    cursorAfter: ({ value, id }) => writeCursor([value, id], identity),
  };
}

function readPageWith(
  query: ParsedUrlQuery,
  { size }: ReadonlySet<KeyInclude>,
): { readonly limit: number; readonly cursor?: string } {
  const page = readPage(query);
  if (size === 0 || page.limit <= LONGEST_PAGE_WITH_MORE) return page;
  if (query.limit === undefined) return { ...page, limit: LONGEST_PAGE_WITH_MORE };
  throw invalid('limit', `must be at most ${LONGEST_PAGE_WITH_MORE} with "include"`);
}

/** Reads the parameters that filter keys. Throws `InvalidParameter`. */
export function readKeyFilter(query: ParsedUrlQuery): KeyFilter {
  const text = readValid(query, 'q', isSearchText);
  const planId = readValid(query, 'rateLimitId', isPlanId);
  const tags = query.tag === undefined ? [] : [...new Set([query.tag].flat())].toSorted();
  if (tags.length > MAX_TAGS || !tags.every(isTag)) throw invalid('tag');
  const externalId = readValid(query, 'externalId', isExternalId);
  const statuses = readWords(query, 'status', KEY_STATUSES);
  return definedFields({
    text,
    statuses: statuses.length > 0 ? statuses : undefined,
    ...{ planId, tags, externalId },
    createdFromMs: readParsed(query, 'createdAfter', queryInstant),
    createdBeforeMs: readParsed(query, 'createdBefore', queryInstant),
    expiresBeforeMs: readParsed(query, 'expiresBefore', queryInstant),
    unusedSinceMs: readParsed(query, 'unusedSince', queryInstant),
  });
}

function readPosition([value, id, ...rest]: readonly unknown[], sort: KeyOrder['sort']): KeyPosition {
  const mayBeNull = sort === 'lastUsedAt' || sort === 'expiresAt';
  if (typeof id !== 'string' || !isKeyId(id) || rest.length > 0) throw new InvalidCursor();
  if (sort === 'name' && isStorable(value)) return { value, id };
  if (sort !== 'name' && isInstant(value)) return { value, id };
  if (mayBeNull && value === null) return { value, id };
  throw new InvalidCursor();
}

/** Each word once, in the order of `words`; empty if the parameter is missing. */
function readWords<const Word extends string>(
  query: ParsedUrlQuery,
  name: 'include' | 'status',
  words: readonly Word[],
): readonly Word[] {
  const value = query[name];
  if (value === undefined) return [];
  const named: readonly string[] = [value].flat().flatMap((text) => text.split(','));
  const known = words.filter((word) => named.includes(word));
  if (named.length > words.length || !named.every((text) => known.some((word) => word === text)))
    throw invalid(name);
  return known;
}
