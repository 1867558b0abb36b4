import type { components, operations } from '../../client/management-api.ts';
import type { ManagementClient } from '../../client/management-client.ts';
import type { Call } from './live.ts';

export type UsageSeries = components['schemas']['UsageSeries'];
export type UsageRow = components['schemas']['UsageRow'];
export type UsageQuery = NonNullable<operations['showUsage']['parameters']['query']>;

/** The usage of all keys, for `useLive`. The interface has it as CSV too; this asks for JSON. */
export async function readUsage(
  client: ManagementClient,
  query: UsageQuery,
  signal: AbortSignal,
): ReturnType<Call<UsageSeries>> {
  const { data, error, response } = await client.GET('/api-keys/usage', {
    params: { query: { ...query, format: 'json' } },
    signal,
  });
  return { response, error, ...(typeof data === 'object' && { data }) };
}
