import { Plus, Webhook as WebhookIcon } from 'lucide-react';
import { Link, useSearchParams } from 'wouter';
import { useScopes } from '../api/api-context.tsx';
import { useLivePages } from '../api/live-pages.ts';
import { Button } from '../components/forms/button.tsx';
import { type Column, DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { SecondLine } from '../components/layout/second-line.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { NoScope } from '../components/states/live-state.tsx';
import { CreateWebhook } from './webhooks/create-webhook.tsx';
import { type Webhook, webhookName } from './webhooks/shown-webhook.ts';
import { WebhookBadge } from './webhooks/webhook-states.tsx';
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
        pages={webhooks}
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
    (client, query, signal) => client.GET('/tollgate/webhook', { params: { query }, signal }),
    { page: ({ webhooks, nextCursor }) => ({ rows: webhooks, nextCursor }), scope: 'webhooks:read' },
  );
}

const COLUMNS: readonly Column<Webhook>[] = [
  {
    id: 'webhook',
    header: 'Webhook',
    sortBy: webhookName,
    cell: (webhook) => (
      <>
        <span className={styles.name}>
          <Link href={`/webhooks/${webhook.webhookId}`}>
            <bdi>{webhookName(webhook)}</bdi>
          </Link>
          {webhook.description !== '' && <span className={styles.host}>{new URL(webhook.url).host}</span>}
        </span>
        <SecondLine>{[...webhook.events, ...webhook.onlyTags].join(', ')}</SecondLine>
      </>
    ),
  },
  { id: 'state', header: 'State', cell: (webhook) => <WebhookBadge webhook={webhook} /> },
  {
    id: 'events',
    header: 'Events',
    wideOnly: true,
    cell: ({ events }) => (
      <span className={styles.events} title={events.join(', ')}>
        {events.join(', ')}
      </span>
    ),
  },
  {
    id: 'tags',
    header: 'Only with tags',
    wideOnly: true,
    cell: ({ onlyTags }) => (onlyTags.length === 0 ? 'any' : onlyTags.join(', ')),
  },
];
