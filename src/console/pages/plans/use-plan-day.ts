import { instantText } from '../../api/instant-text.ts';
import { type Live, useLive } from '../../api/live.ts';
import { readUsageSeries, type UsageSeries } from '../../api/read-usage-series.ts';
import { now } from '../../format/now.ts';

const DAY_MS = 86_400_000;

/** The requests under a plan in the last 24 hours, hour by hour. */
export function usePlanDay(rateLimitId: string): Live<UsageSeries> {
  return useLive(
    ['plan', rateLimitId, 'usage'],
    (client, signal) => {
      const to = now();
      const query = {
        rateLimitId,
        interval: 'hour',
        from: instantText(to - DAY_MS),
        to: instantText(to),
      } as const;
      return readUsageSeries(client, query, signal);
    },
    { scope: 'usage:read' },
  );
}
