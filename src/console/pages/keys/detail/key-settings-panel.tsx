import type { ReactNode } from 'react';
import { Facts } from '../../../components/layout/facts.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { PageLink } from '../../../components/text/page-link.tsx';
import { EndTime } from '../../../components/text/relative-time.tsx';
import { formatNumber } from '../../../format/numbers.ts';
import type { KeyDetail } from '../key-model.ts';
import styles from './key-page.module.css';

/** The settings of the key. */
export function KeySettingsPanel({ apiKey }: { readonly apiKey: KeyDetail }) {
  const { rateLimitId, overrides, allowedIps, allowedOrigins, selfService, metadata } = apiKey;
  return (
    <Panel title="Settings">
      <Facts
        facts={[
          ['Plan', rateLimitId === null ? 'The default plan' : <PlanLink key="plan" id={rateLimitId} />],
          ['Overrides', <Overrides key="overrides" overrides={overrides} />],
          ['Allowed addresses', listed(allowedIps)],
          ['Allowed origins', listed(allowedOrigins)],
          ['Self-service', selfService.includes('rotate') ? 'The consumer may rotate it' : 'Off'],
          [
            'Metadata',
            metadata === null ? (
              'None'
            ) : (
              <pre key="metadata" className={styles.metadata} dir="auto">
                {JSON.stringify(metadata, null, 2)}
              </pre>
            ),
          ],
        ]}
      />
    </Panel>
  );
}

function PlanLink({ id }: { readonly id: string }) {
  return (
    <PageLink scope="plans:read" href={`/plans/${id}`}>
      {id}
    </PageLink>
  );
}

function Overrides({ overrides }: Pick<KeyDetail, 'overrides'>) {
  const entries = Object.entries(overrides);
  if (entries.length === 0) return 'None';
  return entries.map(([limitId, { limit, until }]) => (
    <div key={limitId}>
      {limitId}: {formatNumber(limit)}
      {until !== undefined && (
        <>
          , ends <EndTime at={until} />
        </>
      )}
    </div>
  ));
}

function listed(values: readonly string[] | null): ReactNode {
  return values === null ? 'Any' : values.map((value) => <div key={value}>{value}</div>);
}
