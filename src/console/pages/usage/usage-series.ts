import type { components, paths } from '../../../client/management-api.ts';
import type { ManagementClient } from '../../../client/management-client.ts';

export type UsageQuery = NonNullable<paths['/api-keys/usage']['get']['parameters']['query']>;
export type UsageSeries = components['schemas']['UsageSeries'];
export type UsageRow = components['schemas']['UsageRow'];

const PAGE = 1000;

/** All rows of a series, page by page: at most the 10 000 that a series may have. */
export async function readUsageSeries(client: ManagementClient, query: UsageQuery, signal: AbortSignal) {
  const rows: UsageRow[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { data, error, response } = await client.GET('/api-keys/usage', {
      params: { query: { ...query, format: 'json', limit: PAGE, ...(cursor !== undefined && { cursor }) } },
      signal,
    });
    // Without `format=csv` the body is never a text.
    if (data === undefined || typeof data === 'string') return { error, response };
    rows.push(...data.rows);
    cursor = data.nextCursor;
    if (cursor === undefined) return { data: { ...data, rows } satisfies UsageSeries, response };
  }
}

/** The instant as the management interface takes it, without fractions. */
export function instantText(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
