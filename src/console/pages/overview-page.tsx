import { Link } from 'wouter';
import { KEY_EVENTS } from '../api/followed.ts';
import { useLive } from '../api/live.ts';
import { PageHeader } from '../components/layout/page-header.tsx';
import { Notice } from '../components/states/notice.tsx';
import { timeZone } from '../format/exact-time.ts';
import { BusiestKeys } from './overview/busiest-keys.tsx';
import { FirstSteps } from './overview/first-steps.tsx';
import { KeysNearLimit } from './overview/keys-near-limit.tsx';
import { ExpiringKeys, UnusedKeys } from './overview/keys-to-look-after.tsx';
import { OutcomesOfTheDay } from './overview/outcomes-of-the-day.tsx';
import styles from './overview/overview.module.css';
import { degradedSentence } from './system/degraded.ts';

/** The state of the gateway: the requests of a day, and the keys that need attention. */
export function OverviewPage() {
  const anyKey = useLive(
    ['any-key'],
    (client, signal) => client.GET('/consumer-api-key', { params: { query: { limit: 1 } }, signal }),
    { scope: 'keys:read', follows: KEY_EVENTS },
  );
  const isEmpty = anyKey.data?.apiKeys.length === 0;
  return (
    <>
      <PageHeader title="Overview" about={`The last 24 hours against the 24 hours before, in ${timeZone}`} />
      <div className={styles.page}>
        <DegradedNotice />
        {isEmpty && <FirstSteps />}
        <OutcomesOfTheDay />
        {!isEmpty && (
          <div className={styles.panels}>
            <BusiestKeys />
            <KeysNearLimit />
            <ExpiringKeys />
            <UnusedKeys />
          </div>
        )}
      </div>
    </>
  );
}

/** A notice across the page while a part of the gateway is degraded. */
function DegradedNotice() {
  const { data } = useLive(['system'], (client, signal) => client.GET('/tollgate/system', { signal }), {
    scope: 'plans:read',
  });
  if (data === undefined || data.degraded.length === 0) return null;
  return (
    <Notice tone="failed" action={<Link href="/system">System</Link>}>
      {data.degraded.map(degradedSentence).join(' ')}
    </Notice>
  );
}
