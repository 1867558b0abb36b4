import { useLive } from '../api/live.ts';
import { PageHeader } from '../components/layout/page-header.tsx';
import { PanelGrid, PanelStack } from '../components/layout/panels.tsx';
import { LiveState } from '../components/states/live-state.tsx';
import { Skeleton } from '../components/states/skeleton.tsx';
import { KeyAuditPanel } from './keys/detail/key-audit-panel.tsx';
import { KeyHeader } from './keys/detail/key-header.tsx';
import styles from './keys/detail/key-page.module.css';
import { KeyRotationPanel } from './keys/detail/key-rotation-panel.tsx';
import { KeySecretPanel } from './keys/detail/key-secret-panel.tsx';
import { KeySettingsPanel } from './keys/detail/key-settings-panel.tsx';
import { KeyUsagePanel } from './keys/detail/key-usage-panel.tsx';
import { KeyCustomers, KeyEndpoints } from './keys/detail/key-use-panels.tsx';
import { KeyWindows } from './keys/limits/key-windows.tsx';

interface KeyPageProps {
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** The page of one key. */
export function KeyPage({ params: { consumerApiKeyId = '' } }: KeyPageProps) {
  const live = useLive(
    ['key', consumerApiKeyId],
    (client, signal) =>
      client.GET('/consumer-api-key/{consumerApiKeyId}', {
        // The page polls: without this, each poll would reveal the secret and write an entry to the audit log.
        params: { path: { consumerApiKeyId }, query: { reveal: 'false' } },
        signal,
      }),
    { scope: 'keys:read' },
  );
  const { etag = '' } = live;
  return (
    <LiveState live={live} what="the key" skeleton={<KeySkeleton />}>
      {(apiKey) => (
        <>
          <KeyHeader apiKey={apiKey} etag={etag} />
          <PanelGrid>
            <div className={styles.whole}>
              <KeyWindows apiKey={apiKey} etag={etag} />
            </div>
            <div className={styles.whole}>
              <KeyUsagePanel keyId={consumerApiKeyId} isUnused={apiKey.lastUsedAt === null} />
            </div>
            <KeyEndpoints live={live} />
            <KeyCustomers live={live} />
            <PanelStack>
              <KeySecretPanel apiKey={apiKey} />
              <KeyRotationPanel apiKey={apiKey} />
            </PanelStack>
            <KeySettingsPanel apiKey={apiKey} />
            <div className={styles.whole}>
              <KeyAuditPanel keyId={consumerApiKeyId} />
            </div>
          </PanelGrid>
        </>
      )}
    </LiveState>
  );
}

function KeySkeleton() {
  return (
    <>
      <PageHeader title="Key" back={{ href: '/keys', label: 'Keys' }} />
      <Skeleton />
    </>
  );
}
