import { useLive } from '../api/live.ts';
import { PageHeader } from '../components/layout/page-header.tsx';
import { PanelGrid, PanelStack } from '../components/layout/panels.tsx';
import { LiveState } from '../components/states/live-state.tsx';
import { Notice } from '../components/states/notice.tsx';
import { StatusBadge } from '../components/text/status-badge.tsx';
import { counted } from '../format/numbers.ts';
import { degradedSentence, type System } from './system/degraded.ts';
import { ReplicaTable } from './system/replicas.tsx';
import { BackendPanel, PostgresPanel, RedisPanel, UsagePanel } from './system/stores.tsx';
import styles from './system/system.module.css';

/** The replicas, the stores and the backend, and which of them are degraded. */
export function SystemPage() {
  const live = useLive(['system'], (client, signal) => client.GET('/tollgate/system', { signal }), {
    scope: 'plans:read',
  });
  const replicas = { ...live, data: live.data?.replicas };
  return (
    <>
      <PageHeader
        title="System"
        badge={live.data !== undefined && <Health degraded={live.data.degraded} />}
        about={
          live.data !== undefined && `Tollgate ${live.data.version}, seen from the replica that responded`
        }
      />
      <LiveState live={live} what="the system" skeleton={<div className={styles.skeleton} />}>
        {({ degraded, stores, usage, backend, liveReplicas }) => (
          <PanelStack>
            {degraded.map((part) => (
              <Notice key={part} tone="failed">
                {degradedSentence(part)}
              </Notice>
            ))}
            <PanelGrid>
              <PostgresPanel postgres={stores.postgres} />
              <RedisPanel redis={stores.redis} />
              {backend !== null && <BackendPanel backend={backend} />}
              <UsagePanel usage={usage} isLate={degraded.includes('usage')} />
            </PanelGrid>
            <section aria-labelledby="replicas">
              <h2 id="replicas" className={styles.section}>
                {liveReplicas === null
                  ? 'Replicas: only this one is known while Redis does not respond'
                  : counted(liveReplicas, 'replica')}
              </h2>
              <ReplicaTable live={{ ...replicas, status: 'ready' }} />
            </section>
          </PanelStack>
        )}
      </LiveState>
    </>
  );
}

function Health({ degraded }: Pick<System, 'degraded'>) {
  if (degraded.length === 0) return <StatusBadge tone="allowed">All works</StatusBadge>;
  return <StatusBadge tone="failed">Degraded</StatusBadge>;
}
