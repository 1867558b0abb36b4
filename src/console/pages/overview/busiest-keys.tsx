import { Link } from 'wouter';
import { useScopes } from '../../api/api-context.tsx';
import { useLive } from '../../api/live.ts';
import { readUsageSeries } from '../../api/read-usage-series.ts';
import { Panel } from '../../components/layout/panel.tsx';
import { LiveState } from '../../components/states/live-state.tsx';
import { KeyName } from '../../components/text/key-name.tsx';
import { NumberText } from '../../components/text/number-text.tsx';
import { StatusBadge } from '../../components/text/status-badge.tsx';
import { counted, formatShort } from '../../format/numbers.ts';
import { ListSkeleton } from './list-skeleton.tsx';
import styles from './overview.module.css';

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
    <Panel
      title="Busiest keys"
      about="Requests in 24 hours"
      action={can('usage:read') && <Link href="/usage?groupBy=key">All usage</Link>}
      flush
    >
      <LiveState live={live} what="the usage" skeleton={<ListSkeleton />}>
        {({ rows }) => {
          const keys = rows
            .flatMap(({ consumerApiKeyId: id, ...row }) =>
              id === undefined || id === '__other__' ? [] : [{ ...row, id }],
            )
            .toSorted((a, b) => b.requests - a.requests);
          if (keys.length === 0) return <p className={styles.quiet}>No key was used in the last 24 hours.</p>;
          return (
            <ul className={styles.list}>
              {keys.map(({ id, consumerApiKeyName, requests, rateLimited }) => (
                <li key={id}>
                  <KeyName id={id} name={consumerApiKeyName} />
                  <span className={styles.figures}>
                    {rateLimited > 0 && (
                      <StatusBadge tone="limited">Limited {times(rateLimited)}</StatusBadge>
                    )}
                    <span title={counted(requests, 'request')}>
                      <NumberText value={requests} short />
                    </span>
                  </span>
                </li>
              ))}
            </ul>
          );
        }}
      </LiveState>
    </Panel>
  );
}

function times(count: number): string {
  return count === 1 ? 'once' : `${formatShort(count)} times`;
}
