import type { ReactNode } from 'react';
import { Panel } from '../../../components/layout/panel.tsx';
import { PageLink } from '../../../components/text/page-link.tsx';
import { RelativeTime } from '../../../components/text/relative-time.tsx';
import { formatNumber } from '../../../format/numbers.ts';
import type { KeyDetail } from '../key-model.ts';
import styles from './key-page.module.css';

/** The settings of the key. */
export function KeySettingsPanel({ apiKey }: { readonly apiKey: KeyDetail }) {
  const { rateLimitId, overrides, allowedIps, allowedOrigins, selfService, metadata } = apiKey;
  return (
    <Panel title="Settings">
      <dl className={styles.facts}>
        <dt>Plan</dt>
        <dd>
          {rateLimitId === null ? (
            'The default plan'
          ) : (
            <PageLink scope="plans:read" href={`/plans/${rateLimitId}`}>
              {rateLimitId}
            </PageLink>
          )}
        </dd>
        <dt>Overrides</dt>
        <dd>
          {Object.keys(overrides).length === 0 && 'None'}
          {Object.entries(overrides).map(([limitId, { limit, until }]) => (
            <div key={limitId}>
              {limitId}: {formatNumber(limit)}
              {until !== undefined && (
                <>
                  , ends <RelativeTime at={until} />
                </>
              )}
            </div>
          ))}
        </dd>
        <dt>Allowed addresses</dt>
        <dd>{listed(allowedIps)}</dd>
        <dt>Allowed origins</dt>
        <dd>{listed(allowedOrigins)}</dd>
        <dt>Self-service</dt>
        <dd>{selfService.includes('rotate') ? 'The consumer may rotate it' : 'Off'}</dd>
        <dt>Metadata</dt>
        <dd>{metadata === null ? 'None' : <pre dir="auto">{JSON.stringify(metadata, null, 2)}</pre>}</dd>
      </dl>
    </Panel>
  );
}

function listed(values: readonly string[] | null): ReactNode {
  return values === null ? 'Any' : values.map((value) => <div key={value}>{value}</div>);
}
