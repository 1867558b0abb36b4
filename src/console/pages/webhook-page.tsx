import { useLive } from '../api/live.ts';
import { PageHeader } from '../components/layout/page-header.tsx';
import { PanelStack } from '../components/layout/panels.tsx';
import { LiveState } from '../components/states/live-state.tsx';
import { Notice } from '../components/states/notice.tsx';
import { Skeleton } from '../components/states/skeleton.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import { DeliveriesPanel } from './webhooks/deliveries-panel.tsx';
import type { Webhook } from './webhooks/shown-webhook.ts';
import { WebhookHeader } from './webhooks/webhook-header.tsx';
import { WebhookSettingsPanel } from './webhooks/webhook-settings-panel.tsx';

interface WebhookPageProps {
  readonly params: Readonly<Record<string, string | undefined>>;
}

/** The page of one webhook. */
export function WebhookPage({ params: { webhookId = '' } }: WebhookPageProps) {
  const live = useLive(
    ['webhooks', webhookId],
    (client, signal) =>
      client.GET('/tollgate/webhook/{webhookId}', { params: { path: { webhookId } }, signal }),
    { scope: 'webhooks:read' },
  );
  return (
    <LiveState live={live} what="the webhook" skeleton={<WebhookSkeleton />}>
      {(webhook) => (
        <>
          <WebhookHeader webhook={webhook} etag={live.etag} />
          <PanelStack>
            <Trouble webhook={webhook} />
            <WebhookSettingsPanel webhook={webhook} />
            <DeliveriesPanel webhook={webhook} />
          </PanelStack>
        </>
      )}
    </LiveState>
  );
}

/** Why nothing is sent, or may soon not be, and what to do about it. */
function Trouble({ webhook: { disabledReason, failingSince } }: { readonly webhook: Webhook }) {
  if (disabledReason !== null)
    return (
      <Notice tone="failed">
        {disabledReason === 'gone'
          ? 'The gateway disabled it, because the endpoint responded with 410 Gone.'
          : 'The gateway disabled it, because all attempts failed for 5 days.'}{' '}
        What happens meanwhile is not sent. Mend the receiver or change the address, then enable it.
      </Notice>
    );
  if (failingSince === null) return null;
  return (
    <Notice tone="limited">
      All attempts have failed since <RelativeTime at={failingSince} />. After 5 days it is disabled, once
      three attempts have failed within three days.
    </Notice>
  );
}

function WebhookSkeleton() {
  return (
    <>
      <PageHeader title="Webhook" back={{ href: '/webhooks', label: 'Webhooks' }} />
      <Skeleton />
    </>
  );
}
