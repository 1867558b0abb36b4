import type { ParsedUrlQuery } from 'node:querystring';
import { InvalidCursor } from '../../errors.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { isExternalId } from '../../keys/external-id.ts';
import { isKeyId } from '../../keys/key-id.ts';
import { isTag } from '../../keys/key-tags.ts';
import { isPlanId, PLAN_ID } from '../../plans/plan-id.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { isStorable } from '../../platform/text/storable-text.ts';
import {
  GROUPINGS,
  type Grouping,
  type SeriesFilter,
  type SeriesPosition,
} from '../../usage/series/series-store.ts';
import { INTERVALS, type TimeSpan } from '../../usage/series/time-buckets.ts';
import { isTimeZone, TimeZone } from '../../usage/series/time-zone.ts';
import type { SeriesRequest } from '../../usage/series/usage-series.ts';
import { isRecordedInstant, recordedInstant } from '../formats.ts';
import { KEY_FILTER_QUERY } from '../keys/key-list-query.ts';
import { isInstant, readCursor, writeCursor } from '../page-cursor.ts';
import { PAGE_QUERY, readPage } from '../page-query.ts';
import { queryParameters } from '../query-parameters.ts';

const INSTANT_RULE =
  'must be an instant as YYYY-MM-DDThh:mm:ssZ (UTC), or a date as YYYY-MM-DD, whose first instant in timeZone it then is; from 1970 to 9998';

/** The query parameters of both series. */
export const KEY_USAGE_QUERY = {
  from: {
    description: `${INSTANT_RULE}. Included; 24 hours before "to" when missing`,
    type: 'string',
    format: 'query-instant',
  },
  to: {
    description: `${INSTANT_RULE}. Excluded, later than "from"; now when missing`,
    type: 'string',
    format: 'query-instant',
  },
  interval: {
    description: `must be one of ${INTERVALS.join(', ')}`,
    type: 'string',
    enum: INTERVALS,
    default: 'hour',
  },
  timeZone: {
    description: 'must be the name of a time zone of the IANA database, whose days and months are counted',
    type: 'string',
    default: 'UTC',
    examples: ['Europe/Berlin'],
  },
  groupBy: {
    description: `must be at most two of ${GROUPINGS.join(', ')}, separated by a comma`,
    type: 'string',
    examples: ['key,rateLimit'],
  },
  rateLimitId: {
    description: 'must be the id of a plan: only requests that were made under it are counted',
    type: 'string',
    pattern: PLAN_ID.source,
  },
  top: {
    description:
      'must be an integer from 1 to 100, with groupBy: lists this many groups, those with the most requests; the rest is __other__',
    type: 'integer',
    minimum: 1,
    maximum: 100,
  },
  format: {
    description: 'must be json or csv; decides before the Accept header does',
    type: 'string',
    enum: ['json', 'csv'],
  },
  ...PAGE_QUERY,
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** The most keys that a series of all keys may be filtered by: a page of the list of keys with `include`. */
const MAX_KEYS = 200;

/** The query parameters of the series of all keys. */
export const ALL_USAGE_QUERY = {
  ...KEY_USAGE_QUERY,
  consumerApiKeyId: {
    description: `must be the id of a key, or of up to ${MAX_KEYS} separated by commas; they may be deleted`,
    type: 'string',
  },
  tag: KEY_FILTER_QUERY.tag,
  externalId: KEY_FILTER_QUERY.externalId,
} as const satisfies Readonly<Record<string, FieldSchema>>;

const { readText, readParsed, readValid, readWord, invalid } = queryParameters(ALL_USAGE_QUERY);

/** The series that a query requests. */
export interface UsageQuery extends SeriesRequest {
  readonly limit: number;
  readonly after: UsageCursor['after'] | undefined;
  /** Undefined if the Accept header decides. */
  readonly format: 'json' | 'csv' | undefined;
  /** The cursor of the page that follows a position. */
  cursorAfter(after: UsageCursor['after']): string;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * Reads the parameters of a series; with a key, only those of `KEY_USAGE_QUERY`. Throws `invalid_parameter` for a bad or repeated one, and
 * `InvalidCursor` for a cursor of another query.
 */
export function readUsageQuery(query: ParsedUrlQuery, keyId: string | undefined, nowMs: number): UsageQuery {
  const { limit, cursor } = readPage(query);
  const zone = new TimeZone(readValid(query, 'timeZone', isTimeZone) ?? 'UTC');
  const groupBy = readParsed(query, 'groupBy', parseGroupBy) ?? [];
  const request = {
    interval: readWord(query, 'interval', INTERVALS) ?? 'hour',
    zone,
    groupBy,
    filter: readFilter(query, keyId),
    top: readTop(query, groupBy),
  };
  const { zone: _, ...identity } = { ...request, timeZone: zone.name, from: query.from, to: query.to };
  const page = cursor === undefined ? undefined : readUsageCursor(cursor, identity, groupBy.length);
  const span = page?.span ?? readSpan(query, zone, nowMs);
  return {
    ...request,
    span,
    limit,
    after: page?.after,
    format: readWord(query, 'format', ['json', 'csv']),
    cursorAfter: (after) => writeUsageCursor({ span, after }, identity),
  };
}

function readSpan(query: ParsedUrlQuery, zone: TimeZone, nowMs: number): TimeSpan {
  const toMs = readInstant(query, 'to', zone) ?? nowMs;
  const fromMs = readInstant(query, 'from', zone) ?? toMs - DAY_MS;
  if (fromMs < toMs) return { fromMs, toMs };
  throw invalid('from', 'must be earlier than "to", which is now when missing');
}

function readInstant(query: ParsedUrlQuery, name: 'from' | 'to', zone: TimeZone): number | undefined {
  const text = readText(query, name);
  if (text === undefined) return undefined;
  const instant = recordedInstant(text, (midnightMs) => zone.startOf(midnightMs));
  if (instant !== undefined) return instant;
  throw invalid(name, INSTANT_RULE);
}

function parseGroupBy(text: string): readonly Grouping[] | undefined {
  const groupBy = text.split(',').map((name) => GROUPINGS.find((grouping) => grouping === name.trim()));
  const isAllowed = groupBy.length <= 2 && new Set(groupBy).size === groupBy.length;
  if (!isAllowed || groupBy.includes(undefined)) return undefined;
  return groupBy.filter((grouping) => grouping !== undefined);
}

function readFilter(query: ParsedUrlQuery, keyId: string | undefined): SeriesFilter {
  const planId = readValid(query, 'rateLimitId', isPlanId);
  const keyIds = readParsed(query, 'consumerApiKeyId', parseKeyIds);
  const tag = readValid(query, 'tag', isTag);
  const externalId = readValid(query, 'externalId', isExternalId);
  return definedFields({ keyId, keyIds, planId, tag, externalId });
}

/** The ids without duplicates, sorted: the same keys in another order are the same query. */
function parseKeyIds(text: string): readonly string[] | undefined {
  const keyIds = [...new Set(text.split(','))].toSorted();
  return keyIds.length <= MAX_KEYS && keyIds.every(isKeyId) ? keyIds : undefined;
}

function readTop(query: ParsedUrlQuery, groupBy: readonly Grouping[]): number | undefined {
  const isTop = (text: string) => groupBy.length > 0 && /^(?:[1-9]\d?|100)$/.test(text);
  const text = readValid(query, 'top', isTop);
  return text === undefined ? undefined : Number(text);
}

/** The position where a page of a series begins, with its span: the default span moves on between two pages. */
interface UsageCursor {
  readonly span: TimeSpan;
  readonly after: SeriesPosition;
}

function writeUsageCursor({ span, after }: UsageCursor, query: unknown): string {
  return writeCursor([span.fromMs, span.toMs, after.startMs, ...after.group], query);
}

/** Throws `InvalidCursor` unless `writeUsageCursor` made the cursor for this query with this number of groups. */
function readUsageCursor(cursor: string, query: unknown, groups: number): UsageCursor {
  const [fromMs, toMs, startMs, ...group] = readCursor(cursor, query);
  // A span of a query. A bucket may begin before it.
  const isOurs = isInstant(fromMs) && isInstant(toMs) && isInstant(startMs);
  if (!isOurs || !isRecordedInstant(fromMs) || !isRecordedInstant(toMs)) throw new InvalidCursor();
  if (group.length !== groups || !group.every(isStorable)) throw new InvalidCursor();
  return { span: { fromMs, toMs }, after: { startMs, group } };
}
