import type { components, paths } from '../../client/management-api.ts';
import type { ManagementClient } from '../../client/management-client.ts';

export type UsageQuery = NonNullable<paths['/api-keys/usage']['get']['parameters']['query']>;
export type UsageSeries = components['schemas']['UsageSeries'];
export type UsageRow = components['schemas']['UsageRow'];

const PAGE = 1000;

/** All rows of a series, page by page: at most 10 000, the limit of a series. */
export async function readUsageSeries(client: ManagementClient, query: UsageQuery, signal?: AbortSignal) {
  const rows: UsageRow[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { data, error, response } = await jsonSeries(
      client.GET('/api-keys/usage', {
        params: { query: { ...query, format: 'json', limit: PAGE, ...(cursor !== undefined && { cursor }) } },
        ...(signal && { signal }),
      }),
    );
    if (data === undefined) return { error, response };
    rows.push(...data.rows);
    cursor = data.nextCursor;
    if (cursor === undefined) return { data: { ...data, rows } satisfies UsageSeries, response };
  }
}

interface Read<Data> {
  readonly data?: Data;
  readonly error?: unknown;
  readonly response: Response;
}

/** The JSON response of a series. Its type also allows CSV, which comes only if it is requested. */
export async function jsonSeries(call: Promise<Read<UsageSeries | string>>): Promise<Read<UsageSeries>> {
  const { data, error, response } = await call;
  return { response, error, ...(typeof data === 'object' && { data }) };
}
