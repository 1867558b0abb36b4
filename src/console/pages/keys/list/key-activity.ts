import { useQuery } from '@tanstack/react-query';
import { bodyOf, type ManagementClient } from '../../../../client/management-client.ts';
import { useApi, useScopes } from '../../../api/api-context.tsx';
import { readUsageSeries } from '../../../api/read-usage-series.ts';

/** The requests of a key in each of 24 hours, oldest first. */
export type Activity = readonly number[];

const HOUR_MS = 3_600_000;
const REFRESH_MS = 60_000;
/** Keys that come into sight within this time share a request. */
const GATHER_MS = 80;
const MOST_KEYS = 100;

/** The last 24 hours of a key; undefined until they are loaded. Rows that come into sight at the same time share a request. */
export function useKeyActivity(keyId: string): Activity | undefined {
  const { client } = useApi();
  const { can } = useScopes();
  const { data } = useQuery({
    queryKey: ['key-activity', keyId],
    queryFn: () => batchOf(client).load(keyId),
    enabled: can('usage:read'),
    staleTime: REFRESH_MS,
    refetchInterval: REFRESH_MS,
  });
  return data;
}

const batches = new WeakMap<ManagementClient, ActivityBatch>();

function batchOf(client: ManagementClient): ActivityBatch {
  const known = batches.get(client) ?? new ActivityBatch(client);
  batches.set(client, known);
  return known;
}

/** A batch loader: collects keys for a moment and reads their usage with one request. */
class ActivityBatch {
  readonly #client: ManagementClient;
  #waiting: string[] = [];
  #response: Promise<ReadonlyMap<string, Activity>> | undefined;

  constructor(client: ManagementClient) {
    this.#client = client;
  }

  async load(keyId: string): Promise<Activity> {
    if (this.#waiting.length >= MOST_KEYS) this.#response = undefined;
    if (this.#response === undefined) {
      const keyIds: string[] = [];
      this.#waiting = keyIds;
      this.#response = new Promise((resolve) => setTimeout(resolve, GATHER_MS)).then(() => {
        if (this.#waiting === keyIds) this.#response = undefined;
        return read(this.#client, keyIds);
      });
    }
    this.#waiting.push(keyId);
    const activities = await this.#response;
    return activities.get(keyId) ?? new Array<number>(24).fill(0);
  }
}

async function read(
  client: ManagementClient,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, Activity>> {
  const query = { consumerApiKeyId: keyIds.join(','), groupBy: 'key', interval: 'hour' } as const;
  const activities = new Map(keyIds.map((keyId) => [keyId, new Array<number>(24).fill(0)]));
  const { to, rows } = await bodyOf(readUsageSeries(client, query));
  const firstHour = Date.parse(to) - 24 * HOUR_MS;
  for (const { start, consumerApiKeyId = '', requests } of rows) {
    const hour = (Date.parse(start) - firstHour) / HOUR_MS;
    const activity = activities.get(consumerApiKeyId);
    if (activity !== undefined && hour >= 0) activity[hour] = requests;
  }
  return activities;
}
