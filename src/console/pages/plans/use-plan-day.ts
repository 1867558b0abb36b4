import { type Live, useLive } from '../../api/live.ts';
import { readUsageSeries, type UsageSeries } from '../../api/read-usage-series.ts';

/** The requests under a plan in the last 24 hours, hour by hour. */
export function usePlanDay(rateLimitId: string): Live<UsageSeries> {
  return useLive(
    ['plan', rateLimitId, 'usage'],
    (client, signal) => readUsageSeries(client, { rateLimitId, interval: 'hour' }, signal),
    { scope: 'usage:read' },
  );
}
