import { Send } from 'lucide-react';
import { useState } from 'react';
import { useLivePages } from '../../api/live-pages.ts';
import { useAddress } from '../../api/use-address.ts';
import { Button, TextButton } from '../../components/forms/button.tsx';
import { Select } from '../../components/forms/field.tsx';
import { focusFilters } from '../../components/forms/focus-filters.ts';
import { type Column, DataTable } from '../../components/layout/data-table.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { SecondLine } from '../../components/layout/second-line.tsx';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { formatNumber } from '../../format/numbers.ts';
import { DeliveryDialog } from './delivery-dialog.tsx';
import type { Delivery, Webhook } from './shown-webhook.ts';
import { attemptWords, DeliveryBadge, durationWords, STATUS_WORDS } from './webhook-states.tsx';
import styles from './webhooks.module.css';

/** Deliveries on a page: each comes with its body. */
const ROWS = 25;

/** The deliveries of a webhook, newest first. The filter is in the URL. */
export function DeliveriesPanel({ webhook }: { readonly webhook: Webhook }) {
  const [params, change] = useAddress();
  const [opened, setOpened] = useState<Delivery>();
  const status = statusOf(params.get('status'));
  const deliveries = useDeliveries(webhook.webhookId, status);
  const listed = deliveries.data?.find(({ deliveryId }) => deliveryId === opened?.deliveryId);
  const showAll = () => {
    change({ status: '' });
    focusFilters();
  };
  // The dialog outlasts the row: newer deliveries, or the filter, may take it out of the list.
  if (listed !== undefined && listed !== opened) setOpened(listed);
  return (
    <Panel
      flush
      title="Deliveries"
      about="Kept for 7 days after success, for 30 days after failure"
      action={
        <search>
          <Select
            className={styles.filter}
            aria-label="Status of the deliveries"
            value={status ?? ''}
            options={[['', 'All'], ...Object.entries(STATUS_WORDS)]}
            onText={(value) => change({ status: value })}
          />
        </search>
      }
    >
      <DataTable
        label="deliveries"
        live={deliveries}
        columns={columnsOf(setOpened)}
        rowId={({ deliveryId }) => deliveryId}
        pages={deliveries}
        staysLive
        empty={<NoDeliveries isFiltered={status !== undefined} onClear={showAll} />}
      />
      {opened !== undefined && (
        <DeliveryDialog
          webhook={webhook}
          delivery={opened}
          isListed={listed !== undefined}
          onClose={() => setOpened(undefined)}
        />
      )}
    </Panel>
  );
}

type Status = Delivery['status'];

function statusOf(text: string | null): Status | undefined {
  return text !== null && Object.hasOwn(STATUS_WORDS, text) ? (text as Status) : undefined;
}

function useDeliveries(webhookId: string, status: Status | undefined) {
  return useLivePages(
    ['webhooks', webhookId, 'deliveries', status],
    (client, query, signal) =>
      client.GET('/tollgate/webhook/{webhookId}/deliveries', {
        params: {
          path: { webhookId },
          query: { ...query, limit: ROWS, ...(status !== undefined && { status }) },
        },
        signal,
      }),
    { page: ({ deliveries, nextCursor }) => ({ rows: deliveries, nextCursor }), scope: 'webhooks:read' },
  );
}

interface NoDeliveriesProps {
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}

function NoDeliveries({ isFiltered, onClear }: NoDeliveriesProps) {
  return isFiltered ? (
    <EmptyState title="No delivery matches" action={<Button onClick={onClear}>Show all</Button>} />
  ) : (
    <EmptyState icon={Send} title="Nothing was sent yet">
      The first event that the webhook hears appears here.
    </EmptyState>
  );
}

function columnsOf(onShow: (delivery: Delivery) => void): readonly Column<Delivery>[] {
  return [
    {
      id: 'event',
      header: 'Event',
      cell: (delivery) => (
        <>
          <TextButton className={styles.open} onClick={() => onShow(delivery)}>
            <bdi>{delivery.eventType}</bdi>
            {delivery.eventIds.length > 1 && ` × ${formatNumber(delivery.eventIds.length)}`}
          </TextButton>
          <SecondLine>
            {attemptWords(delivery.attempts.at(-1))} · <RelativeTime at={delivery.createdAt} />
          </SecondLine>
        </>
      ),
    },
    { id: 'status', header: 'Status', cell: (delivery) => <DeliveryBadge delivery={delivery} /> },
    {
      id: 'response',
      header: 'Response',
      wideOnly: true,
      cell: ({ attempts }) => attemptWords(attempts.at(-1)),
    },
    {
      id: 'duration',
      header: 'Duration',
      align: 'end',
      wideOnly: true,
      cell: ({ durationMs }) => durationWords(durationMs),
    },
    {
      id: 'attempts',
      header: 'Attempts',
      wideOnly: true,
      align: 'end',
      cell: ({ attempts }) => formatNumber(attempts.length),
    },
    {
      id: 'next',
      header: 'Next attempt',
      wideOnly: true,
      cell: ({ nextAttemptAt }) => <RelativeTime at={nextAttemptAt} missing="–" />,
    },
    {
      id: 'created',
      header: 'Created',
      wideOnly: true,
      cell: ({ createdAt }) => <RelativeTime at={createdAt} />,
    },
  ];
}
