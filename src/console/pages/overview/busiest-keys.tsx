import { Link } from 'wouter';
import { useScopes } from '../../api/api-context.tsx';
import { useLive } from '../../api/live.ts';
import { readUsageSeries, type UsageSeries } from '../../api/read-usage-series.ts';
import { NumberText } from '../../components/text/number-text.tsx';
import { StatusBadge } from '../../components/text/status-badge.tsx';
import { counted, formatShort } from '../../format/numbers.ts';
import { type KeyLine, KeysPanel } from './keys-panel.tsx';

const MOST = 6;

/** The keys with the most requests in 24 hours. */
export function BusiestKeys() {
  const { can } = useScopes();
  const live = useLive(
    ['busiest-keys'],
    (client, signal) => readUsageSeries(client, { groupBy: 'key', interval: 'total', top: MOST }, signal),
    { scope: 'usage:read' },
  );
  return (
    <KeysPanel
      title="Busiest keys"
      about="Requests in 24 hours"
      action={can('usage:read') && <Link href="/usage?groupBy=key">All usage</Link>}
      live={live}
      what="the usage"
      lines={linesOf}
      none="No key was used in the last 24 hours."
    />
  );
}

function linesOf({ rows }: UsageSeries): readonly KeyLine[] {
  const busiest = rows.toSorted((a, b) => b.requests - a.requests);
  return busiest.flatMap(({ consumerApiKeyId: id, consumerApiKeyName: name, requests, rateLimited }) => {
    if (id === undefined || id === '__other__') return [];
    const figures = (
      <>
        {rateLimited > 0 && <StatusBadge tone="limited">Limited {times(rateLimited)}</StatusBadge>}
        <span title={counted(requests, 'request')}>
          <NumberText value={requests} />
        </span>
      </>
    );
    return [{ id, name, figures }];
  });
}

function times(count: number): string {
  return count === 1 ? 'once' : `${formatShort(count)} times`;
}
