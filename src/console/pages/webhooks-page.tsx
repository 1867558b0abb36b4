import { Plus, Webhook as WebhookIcon } from 'lucide-react';
import { Link, useSearchParams } from 'wouter';
import { useScopes } from '../api/api-context.tsx';
import { useLive } from '../api/live.ts';
import { PAGE_ROWS, useLivePages } from '../api/live-pages.ts';
import { Button } from '../components/forms/button.tsx';
import { type Column, DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { NoScope } from '../components/states/live-state.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import { CreateWebhook } from './webhooks/create-webhook.tsx';
import { type Webhook, webhookName } from './webhooks/shown-webhook.ts';
import { DeliveryBadge, WebhookBadge } from './webhooks/webhook-states.tsx';
import styles from './webhooks/webhooks.module.css';

/** Where events are sent. */
export function WebhooksPage() {
  const { can } = useScopes();
  if (!can('webhooks:read')) return <NoScope what="webhooks" scope="webhooks:read" />;
  return <Webhooks />;
}

function Webhooks() {
  const { can } = useScopes();
  const [params, setParams] = useSearchParams();
  const webhooks = useWebhooks();
  const create = () => setParams({ create: '' }, { replace: true });
  const mayCreate = can('webhooks:write');
  return (
    <>
      <PageHeader
        title="Webhooks"
        about="Send what happens to other systems, as signed requests."
        actions={
          mayCreate && (
            <Button look="primary" onClick={create}>
              <Plus aria-hidden="true" />
              Create webhook
            </Button>
          )
        }
      />
      <DataTable
        label="webhooks"
        live={webhooks}
        columns={COLUMNS}
        rowId={({ webhookId }) => webhookId}
        rowHref={({ webhookId }) => `/webhooks/${webhookId}`}
        hasMore={webhooks.hasMore}
        loadMore={webhooks.loadMore}
        empty={
          <EmptyState
            icon={WebhookIcon}
            title="No webhooks yet"
            action={mayCreate && <Button onClick={create}>Create the first</Button>}
          >
            A webhook sends each event until the receiver has accepted it.
          </EmptyState>
        }
      />
      {mayCreate && params.has('create') && (
        <CreateWebhook onClose={() => setParams({}, { replace: true })} />
      )}
    </>
  );
}

function useWebhooks() {
  return useLivePages(
    ['webhooks'],
    (client, cursor, signal) =>
      client.GET('/tollgate/webhook', {
        params: { query: { limit: PAGE_ROWS, ...(cursor !== undefined && { cursor }) } },
        signal,
      }),
    { page: ({ webhooks, nextCursor }) => ({ rows: webhooks, nextCursor }), scope: 'webhooks:read' },
  );
}

const COLUMNS: readonly Column<Webhook>[] = [
  {
    id: 'webhook',
    header: 'Webhook',
    sortBy: webhookName,
    cell: (webhook) => (
      <span className={styles.name}>
        <Link href={`/webhooks/${webhook.webhookId}`}>
          <bdi>{webhookName(webhook)}</bdi>
        </Link>
        {webhook.description !== '' && <span className={styles.host}>{new URL(webhook.url).host}</span>}
      </span>
    ),
  },
  { id: 'state', header: 'State', cell: (webhook) => <WebhookBadge webhook={webhook} /> },
  {
    id: 'last',
    header: 'Last delivery',
    cell: ({ webhookId }) => <LastDelivery webhookId={webhookId} />,
  },
  {
    id: 'events',
    header: 'Events',
    cell: ({ events }) => (
      <span className={styles.events} title={events.join(', ')}>
        {events.join(', ')}
      </span>
    ),
  },
  {
    id: 'tags',
    header: 'Only with tags',
    cell: ({ onlyTags }) => (onlyTags.length === 0 ? 'any' : onlyTags.join(', ')),
  },
];

/** The newest delivery of a webhook. The list does not have it. */
function LastDelivery({ webhookId }: { readonly webhookId: string }) {
  const { data } = useLive(
    ['webhooks', webhookId, 'last-delivery'],
    (client, signal) =>
      client.GET('/tollgate/webhook/{webhookId}/deliveries', {
        params: { path: { webhookId }, query: { limit: 1 } },
        signal,
      }),
    { scope: 'webhooks:read', pollMs: 15_000 },
  );
  const [last] = data?.deliveries ?? [];
  if (data === undefined) return null;
  if (last === undefined) return <span className={styles.faint}>none</span>;
  return (
    <span className={styles.last}>
      <DeliveryBadge delivery={last} />
      <RelativeTime at={last.createdAt} />
    </span>
  );
}
