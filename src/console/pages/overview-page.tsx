import { useState } from 'react';
import { Link } from 'wouter';
import { KEY_EVENTS } from '../api/followed.ts';
import { useLive } from '../api/live.ts';
import { PageHeader } from '../components/layout/page-header.tsx';
import { PanelGrid, PanelStack } from '../components/layout/panels.tsx';
import { Notice } from '../components/states/notice.tsx';
import { localTimeZone } from '../format/exact-time.ts';
import { BusiestKeys } from './overview/busiest-keys.tsx';
import { FirstSteps } from './overview/first-steps.tsx';
import { KeysNearLimit } from './overview/keys-near-limit.tsx';
import { ExpiringKeys, UnusedKeys } from './overview/keys-to-look-after.tsx';
import { OutcomesOfTheDay } from './overview/outcomes-of-the-day.tsx';
import { degradedSentence } from './system/degraded.ts';

/** The state of the gateway: the requests of a day, and the keys that need attention. */
export function OverviewPage() {
  const { isEmpty, steps } = useFirstSteps();
  return (
    <>
      <PageHeader
        title="Overview"
        about={`The last 24 hours, compared with the day before up to this time, in ${localTimeZone()}`}
      />
      <PanelStack>
        <DegradedNotice />
        {steps !== undefined && <FirstSteps {...steps} />}
        <OutcomesOfTheDay />
        {!isEmpty && (
          <PanelGrid>
            <BusiestKeys />
            <KeysNearLimit />
            <ExpiringKeys />
            <UnusedKeys />
          </PanelGrid>
        )}
      </PanelStack>
    </>
  );
}

/** A gateway is new until its only key was used. Steps that were shown stay until the page is left, the last one ticked off. */
function useFirstSteps() {
  const [wasNew, setWasNew] = useState(false);
  const { data } = useLive(
    ['any-key'],
    (client, signal) =>
      client.GET('/consumer-api-key', {
        params: { query: { limit: 2, sort: 'lastUsedAt', order: 'desc', include: 'usage' } },
        signal,
      }),
    { scope: 'keys:read', ...(!wasNew && { follows: KEY_EVENTS }) },
  );
  const keys = data?.apiKeys ?? [];
  const hasRequest = keys.some(({ usage }) => (usage?.totalRequests ?? 0) > 0);
  const isNew = data !== undefined && keys.length < 2 && !hasRequest;
  if (isNew && !wasNew) setWasNew(true);
  return {
    isEmpty: data !== undefined && keys.length === 0,
    steps: wasNew ? { hasKey: keys.length > 0, hasRequest } : undefined,
  };
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
