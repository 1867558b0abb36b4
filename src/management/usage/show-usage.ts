import type { ParsedUrlQuery } from 'node:querystring';
import { TollgateError } from '../../errors.ts';
import { type CsvValue, csvFile } from '../../platform/text/csv.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import { averageMs } from '../../usage/combine-usage.ts';
import type { Grouping, SeriesPosition, SeriesRow } from '../../usage/series/series-store.ts';
import { MAX_SERIES_ROWS, type SeriesPage } from '../../usage/series/usage-series.ts';
import { type Call, type Endpoint, type ManagementServices, StreamedText } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, orNull, TEXT } from '../response-schemas.ts';
import { ALL_USAGE_QUERY, KEY_USAGE_QUERY, readUsageQuery, type UsageQuery } from './usage-query.ts';

/** The field of a row that names its group. */
const GROUP_FIELDS: Readonly<Record<Grouping, string>> = {
  key: 'consumerApiKeyId',
  rateLimit: 'rateLimitId',
  endpoint: 'endpoint',
  customer: 'customerId',
};

/** The field with the key's name, beside the key's id. */
const KEY_NAME = 'consumerApiKeyName';

const COUNT_FIELDS = {
  requests: COUNT,
  successful: COUNT,
  failed: COUNT,
  rateLimited: COUNT,
  clientErrors: COUNT,
  serverErrors: COUNT,
  shadowLimited: {
    ...COUNT,
    description: 'How often a limit in shadow mode would have rejected a request that was allowed.',
  },
  averageResponseTimeMs: { type: 'number', minimum: 0, description: 'The mean over forwarded requests.' },
  forwarded: {
    ...COUNT,
    description:
      'Requests that were forwarded to the backend: the weight of averageResponseTimeMs in a sum of rows.',
  },
};

const SERIES = named('UsageSeries', {
  type: 'object',
  required: ['from', 'to', 'interval', 'timeZone', 'completeUntil', 'rows'],
  properties: {
    from: {
      ...INSTANT,
      description: 'Included. What was asked for, rounded outwards to a whole hour or day.',
    },
    to: { ...INSTANT, description: 'Excluded. Rounded likewise.' },
    interval: TEXT,
    timeZone: TEXT,
    completeUntil: { ...INSTANT, description: 'Buckets that end by then change no more.' },
    rows: listOf(
      named('UsageRow', {
        type: 'object',
        required: ['start', ...Object.keys(COUNT_FIELDS)],
        properties: {
          start: {
            ...INSTANT,
            description: 'First instant of the bucket. Buckets without requests have no row.',
          },
          consumerApiKeyId: { ...TEXT, description: 'With groupBy=key.' },
          consumerApiKeyName: {
            ...orNull(TEXT),
            description:
              'With groupBy=key, for tokens that may read keys. Null for a key that was deleted, and for __other__.',
          },
          rateLimitId: {
            ...orNull(TEXT),
            description: 'With groupBy=rateLimit. Null where no plan applied.',
          },
          endpoint: { ...TEXT, description: 'With groupBy=endpoint.' },
          customerId: { ...TEXT, description: 'With groupBy=customer.' },
          ...COUNT_FIELDS,
        },
      }),
    ),
    nextCursor: { type: 'string', description: 'Present only when there are more rows.' },
  },
});

const ERRORS = ['invalid_cursor', 'unsupported_grouping', 'range_too_large'] as const;

/** Shows the requests of one key over time. */
export const showKeyUsage: Endpoint = {
  method: 'get',
  path: '/consumer-api-key/{consumerApiKeyId}/usage',
  operationId: 'showConsumerKeyUsage',
  summary: 'Show the usage of a consumer API key over time',
  scope: 'usage:read',
  query: KEY_USAGE_QUERY,
  status: 200,
  response: SERIES,
  csv: true,
  errors: [...ERRORS, 'key_not_found'],
  async handle(call, services) {
    const query = readUsageQuery(call.query, call.id, services.clock.nowMs());
    await services.keys.requireKey(call.id, call.principal.onlyTags);
    const read: ReadSeries = (limit, after) =>
      services.series.readKey({ ...query, keyId: call.id }, limit, after);
    return respondWithSeries(query, { call, services, read });
  },
};

/** Shows the requests of all keys over time. */
export const showUsage: Endpoint = {
  method: 'get',
  path: '/api-keys/usage',
  operationId: 'showUsage',
  summary: 'Show the usage of all consumer API keys over time',
  scope: 'usage:read',
  query: ALL_USAGE_QUERY,
  status: 200,
  response: SERIES,
  csv: true,
  errors: ERRORS,
  async handle(call, services) {
    const requested = readUsageQuery(call.query, undefined, services.clock.nowMs());
    const query = { ...requested, filter: { ...requested.filter, onlyTags: call.principal.onlyTags } };
    const read: ReadSeries = (limit, after) => services.series.read(query, limit, after);
    return respondWithSeries(query, { call, services, read });
  },
};

type ReadSeries = (limit: number, after: SeriesPosition | undefined) => Promise<SeriesPage>;

interface SeriesCall {
  readonly call: Call<unknown>;
  readonly services: ManagementServices;
  readonly read: ReadSeries;
}

/** A page of rows as JSON, or all rows as CSV. */
async function respondWithSeries(query: UsageQuery, series: SeriesCall): Promise<object> {
  const { call, read } = series;
  const format = query.format ?? call.prefers(['json', 'csv']);
  if (format === 'csv') {
    rejectPages(call.query);
    const { rows } = await read(MAX_SERIES_ROWS, undefined);
    return new StreamedText('text/csv', usageFile(query, rows, await readNames(query, rows, series)));
  }
  const { span, completeUntilMs, rows, next } = await read(query.limit, query.after);
  const names = await readNames(query, rows, series);
  return {
    from: isoSeconds(span.fromMs),
    to: isoSeconds(span.toMs),
    interval: query.interval,
    timeZone: query.zone.name,
    completeUntil: isoSeconds(completeUntilMs),
    rows: rows.map((row) => presentRow(row, query.groupBy, names)),
    nextCursor: next && query.cursorAfter(next),
  };
}

/** The names of the keys, by id; undefined if rows are not grouped by key, or the principal may not read names. */
async function readNames(
  { groupBy }: UsageQuery,
  rows: readonly SeriesRow[],
  { call, services }: SeriesCall,
): Promise<KeyNames | undefined> {
  const place = groupBy.indexOf('key');
  if (place === -1 || !call.principal.scopes.has('keys:read')) return undefined;
  return services.keys.names([...new Set(rows.map(({ group }) => group[place] ?? ''))]);
}

type KeyNames = ReadonlyMap<string, string>;

/** Throws for the parameters of a page: a file with one page would be taken for the whole series. */
function rejectPages({ limit, cursor }: ParsedUrlQuery): void {
  if (limit === undefined && cursor === undefined) return;
  throw new TollgateError('invalid_parameter', 'A CSV file has all rows: leave "limit" and "cursor" out.');
}

function usageFile(
  { groupBy }: UsageQuery,
  rows: readonly SeriesRow[],
  names: KeyNames | undefined,
): Iterable<string> {
  const groups = groupBy.flatMap((grouping) =>
    grouping === 'key' && names !== undefined ? [GROUP_FIELDS.key, KEY_NAME] : [GROUP_FIELDS[grouping]],
  );
  const columns = ['start', ...groups, ...Object.keys(COUNT_FIELDS)];
  const cells = rows.values().map((row) => {
    const fields = presentRow(row, groupBy, names);
    return columns.map((column) => fields[column] ?? null);
  });
  return csvFile(columns, cells);
}

function presentRow(
  row: SeriesRow,
  groupBy: readonly Grouping[],
  names: KeyNames | undefined,
): Readonly<Record<string, CsvValue>> {
  const { requests, successful, forwarded, rateLimited, clientErrors, serverErrors, shadowLimited } =
    row.counts;
  const group = groupBy.flatMap((grouping, index): readonly (readonly [string, CsvValue])[] => {
    const name = row.group[index] ?? '';
    const field = [GROUP_FIELDS[grouping], grouping === 'rateLimit' && name === '' ? null : name] as const;
    return grouping === 'key' && names !== undefined ? [field, [KEY_NAME, names.get(name) ?? null]] : [field];
  });
  return {
    start: isoSeconds(row.startMs),
    ...Object.fromEntries(group),
    requests,
    successful,
    failed: requests - successful,
    rateLimited,
    clientErrors,
    serverErrors,
    shadowLimited,
    averageResponseTimeMs: averageMs(row.counts),
    forwarded,
  };
}
