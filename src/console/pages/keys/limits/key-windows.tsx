import { useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import { useLive } from '../../../api/live.ts';
import { WindowBar } from '../../../components/charts/window-bar.tsx';
import { Button } from '../../../components/forms/button.tsx';
import { Input } from '../../../components/forms/field.tsx';
import { type Column, DataTable } from '../../../components/layout/data-table.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { EmptyState } from '../../../components/states/empty-state.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { RelativeTime } from '../../../components/text/relative-time.tsx';
import { StatusBadge } from '../../../components/text/status-badge.tsx';
import { formatNumber } from '../../../format/numbers.ts';
import styles from '../detail/key-page.module.css';
import { type KeyDetail, type LimitCounter, quotaOf } from '../key-model.ts';
import { GrantDialog } from './grant-dialog.tsx';
import { OverrideDialog } from './override-dialog.tsx';
import { ResetDialog } from './reset-dialog.tsx';

interface KeyWindowsProps {
  readonly apiKey: KeyDetail;
  readonly etag: string;
}

/** The header that names a customer has no other characters. */
const NOT_PRINTABLE = /[^\x20-\x7e]/g;

/** The live counters of all limits of the key, with what can be done about them. */
export function KeyWindows({ apiKey, etag }: KeyWindowsProps) {
  const { consumerApiKeyId } = apiKey;
  const { can } = useScopes();
  const [open, setOpen] = useState<{
    readonly action: 'reset' | 'grant' | 'override';
    readonly limitId: string;
  }>();
  const [customerId, setCustomerId] = useState('');
  const live = useLive(
    ['key-limits', consumerApiKeyId, customerId],
    (client, signal) =>
      client.GET('/consumer-api-key/{consumerApiKeyId}/limits', {
        params: { path: { consumerApiKeyId }, query: customerId === '' ? {} : { customerId } },
        signal,
      }),
    { scope: 'keys:read' },
  );
  const columns: Column<LimitCounter>[] = [
    { id: 'limit', header: 'Limit', cell: (counter) => <LimitCell counter={counter} /> },
    {
      id: 'used',
      header: 'Used',
      cell: (counter) => <WindowBar used={counter.used} limit={quotaOf(counter)} />,
    },
    { id: 'reset', header: 'Resets', cell: (counter) => <ResetCell counter={counter} /> },
    {
      id: 'actions',
      header: 'Actions',
      hiddenHeader: true,
      align: 'end',
      cell: ({ limitId }) => (
        <span className={styles.actions}>
          {can('limits:write') && (
            <>
              <Button
                small
                aria-label={`Grant ${limitId} more room`}
                onClick={() => setOpen({ action: 'grant', limitId })}
              >
                Grant
              </Button>
              <Button
                small
                aria-label={`Reset ${limitId}`}
                onClick={() => setOpen({ action: 'reset', limitId })}
              >
                Reset
              </Button>
            </>
          )}
          {can('keys:write') && (
            <Button
              small
              look="quiet"
              aria-label={`Override ${limitId}`}
              onClick={() => setOpen({ action: 'override', limitId })}
            >
              Override
            </Button>
          )}
        </span>
      ),
    },
  ];
  const counter = live.data?.limits.find(({ limitId }) => limitId === open?.limitId);
  const close = () => setOpen(undefined);
  return (
    <Panel
      flush
      title="Limits"
      about={
        live.data?.rateLimitId == null ? undefined : (
          <>
            Of the plan <bdi>{live.data.rateLimitId}</bdi>
            {apiKey.rateLimitId === null && ', the default'}
          </>
        )
      }
      action={
        live.data?.limits.some(({ per }) => per === 'customer') && (
          <Input
            className={styles.range}
            aria-label="Windows of the customer"
            placeholder="Customer (anonymous)"
            maxLength={128}
            value={customerId}
            onChange={({ target }) => setCustomerId(target.value.replaceAll(NOT_PRINTABLE, ''))}
          />
        )
      }
    >
      {live.data?.degraded === true && (
        <Notice tone="limited">Redis does not respond: what is used is not known now.</Notice>
      )}
      <DataTable
        label="Limits"
        live={{ ...live, data: live.data?.limits }}
        columns={columns}
        rowId={({ limitId }) => limitId}
        empty={<EmptyState title="No limit applies to this key" />}
      />
      {counter !== undefined && open?.action === 'grant' && (
        <GrantDialog {...{ counter, customerId }} keyId={consumerApiKeyId} onClose={close} />
      )}
      {counter !== undefined && open?.action === 'reset' && (
        <ResetDialog {...{ counter, customerId }} keyId={consumerApiKeyId} onClose={close} />
      )}
      {counter !== undefined && open?.action === 'override' && (
        <OverrideDialog apiKey={apiKey} etag={etag} counter={counter} onClose={close} />
      )}
    </Panel>
  );
}

function LimitCell({ counter }: { readonly counter: LimitCounter }) {
  const { limitId, limit, baseLimit, period, per, mode, granted } = counter;
  return (
    <>
      {limitId}
      <span className={styles.sub}>
        {formatNumber(limit)} per {period}
        {per === 'customer' && ', each customer'}
        {limit !== baseLimit && `, instead of ${formatNumber(baseLimit)}`}
        {granted !== null && granted > 0 && `, ${formatNumber(granted)} more in this window`}
      </span>{' '}
      {mode === 'shadow' && <StatusBadge tone="accent">shadow</StatusBadge>}
    </>
  );
}

function ResetCell({ counter: { open, resetTime } }: { readonly counter: LimitCounter }) {
  if (open === null) return <span className={styles.faint}>not known</span>;
  if (!open) return <span className={styles.faint}>no window is open</span>;
  return <RelativeTime at={resetTime} />;
}
