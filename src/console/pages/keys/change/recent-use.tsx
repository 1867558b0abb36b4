import { instantText } from '../../../api/instant-text.ts';
import { useLive } from '../../../api/live.ts';
import { jsonSeries } from '../../../api/read-usage-series.ts';
import { LastUse } from '../../../components/text/last-use.tsx';
import { timeText } from '../../../format/exact-time.ts';
import { now } from '../../../format/now.ts';
import { counted, formatNumber } from '../../../format/numbers.ts';
import type { KeyDetail } from '../key-model.ts';

const HOUR_MS = 3_600_000;

/**
 * Shows who would be affected: "312 requests used this key since 14:00, 20 of them limited." Where the usage can't be read, it shows only when
 * the key was last used.
 */
export function RecentUse({ apiKey }: { readonly apiKey: KeyDetail }) {
  const { consumerApiKeyId, lastUsedAt } = apiKey;
  const live = useLive(
    ['key-recent-use', consumerApiKeyId],
    (client, signal) =>
      jsonSeries(
        client.GET('/consumer-api-key/{consumerApiKeyId}/usage', {
          params: {
            path: { consumerApiKeyId },
            // Usage is kept by the hour: this returns the hours that overlap the last 60 minutes.
            query: { from: instantText(now() - HOUR_MS), interval: 'total' },
          },
          signal,
        }),
      ),
    { scope: 'usage:read' },
  );
  if (live.status === 'loading') return <p>Counting the requests of the last hour…</p>;
  if (live.data === undefined)
    return (
      <p>
        It was <LastUse at={lastUsedAt} />.
      </p>
    );
  const [row] = live.data.rows;
  const since = timeText(Date.parse(live.data.from));
  if (row === undefined)
    return (
      <p>
        No request used this key since {since}; it was <LastUse at={lastUsedAt} />.
      </p>
    );
  return (
    <p>
      <strong>{counted(row.requests, 'request')}</strong> used this key since {since}
      {row.rateLimited > 0 && `, ${formatNumber(row.rateLimited)} of them limited`}.
    </p>
  );
}
