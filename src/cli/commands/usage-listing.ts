import type { Command } from 'commander';
import type { paths } from '../../client/management-api.ts';
import { definedFields } from '../../platform/defined-fields.ts';
import { type PageOptions, paged, pagesOf } from '../api/pages.ts';
import { instant, wholeNumber } from '../option-values.ts';
import type { Column, Listing } from '../output/columns.ts';
import type { Output } from '../output/output.ts';

export interface UsageOptions extends PageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly interval?: string;
  readonly timeZone?: string;
  readonly groupBy?: string;
  readonly top?: number;
  readonly plan?: string;
}

type Series = paths['/api-keys/usage']['get']['responses'][200]['content']['application/json'];
type Row = Series['rows'][number];
type Query = NonNullable<paths['/consumer-api-key/{consumerApiKeyId}/usage']['get']['parameters']['query']>;

/** Adds the options of both series: that of one key and that of all keys. */
export function usageOptions(command: Command): Command {
  return paged(
    command
      .option('--from <when>', 'first instant or date, or how long ago: 7d, 12h')
      .option('--to <when>', 'end, which is excluded: an instant, a date, or how long ago')
      .option('--interval <interval>', 'hour, day, month or total')
      .option('--time-zone <name>', 'whose days and months are counted, like Europe/Berlin')
      .option(
        '--group-by <fields>',
        'at most two of key, rateLimit, endpoint, customer, with a comma between them',
      )
      .option('--top <count>', 'only the busiest groups, the others as one', wholeNumber)
      .option('--plan <id>', 'only requests that this plan applied to'),
  );
}

/** Writes a series: in JSON and YAML with the other fields of the response, in other formats only its rows. */
export async function writeUsage(
  options: UsageOptions,
  output: Output,
  read: (query: Query) => Promise<Series | string>,
): Promise<void> {
  const query = queryOf(options);
  let first: Series | undefined;
  const listed: Row[] = [];
  const pages = pagesOf(options, output, async (page) => {
    const series = await read({ ...query, ...page });
    if (typeof series === 'string') throw new TypeError('the gateway sent CSV, which was not asked for');
    first ??= series;
    return { items: series.rows, nextCursor: series.nextCursor, span: query };
  });
  for await (const page of pages) listed.push(...page);
  const rows = options.top === undefined ? listed : busiestFirst(listed);
  const { nextCursor: _, ...about } = first ?? {};
  await output.report(rowListing(options), rows, { ...about, rows });
}

function queryOf({ from, to, interval, timeZone, groupBy, top, plan }: UsageOptions): Query {
  return definedFields({
    from: from && instant(from, 'ago'),
    to: to && instant(to, 'ago'),
    interval: interval as Query['interval'],
    ...{ timeZone, groupBy, top, rateLimitId: plan },
  });
}

/** Sorts the rows of each start by requests, with the sum of the others last. */
function busiestFirst(rows: readonly Row[]): readonly Row[] {
  return [...Map.groupBy(rows, ({ start }) => start).values()].flatMap((group) =>
    group.toSorted(
      (one, other) => Number(isOthers(one)) - Number(isOthers(other)) || other.requests - one.requests,
    ),
  );
}

/** Whether a row sums all other groups. All names must be `__other__`: a key's row with only that endpoint sums its other endpoints. */
function isOthers(row: Row): boolean {
  return GROUPS.every(({ name }) => (row[name] ?? '__other__') === '__other__');
}

const GROUPS = [
  { name: 'consumerApiKeyId', heading: 'key', grouping: 'key' },
  { name: 'consumerApiKeyName', heading: 'name', grouping: 'key' },
  { name: 'rateLimitId', heading: 'plan', grouping: 'rateLimit' },
  { name: 'endpoint', heading: 'endpoint', grouping: 'endpoint' },
  { name: 'customerId', heading: 'customer', grouping: 'customer' },
] as const;

const COUNTS = [
  { name: 'requests', heading: 'requests' },
  { name: 'successful', heading: 'successful' },
  { name: 'failed', heading: 'failed' },
  { name: 'rateLimited', heading: 'limited' },
  { name: 'clientErrors', heading: '4xx' },
  { name: 'serverErrors', heading: '5xx' },
  { name: 'shadowLimited', heading: 'shadow' },
  { name: 'averageResponseTimeMs', heading: 'mean ms' },
] as const;

function columnOf({ name, heading }: (typeof GROUPS | typeof COUNTS)[number]): Column<Row> {
  return { name, heading, toCell: (row) => row[name] };
}

/** Has the columns of the requested groups, also where there are no rows. */
function rowListing({ groupBy = '' }: UsageOptions): Listing<Row> {
  const requested = groupBy.split(',').map((grouping) => grouping.trim());
  const groups = GROUPS.filter(({ grouping }) => requested.includes(grouping)).map(columnOf);
  const counts = COUNTS.map(columnOf);
  return {
    columns: [{ name: 'start', toCell: ({ start }) => start }, ...groups, ...counts],
    idOf: (row) => groups.flatMap(({ toCell }) => toCell(row) ?? []).join(' ') || row.start,
  };
}
