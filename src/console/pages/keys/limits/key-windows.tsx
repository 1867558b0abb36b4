import { useState } from 'react';
import { useScopes } from '../../../api/api-context.tsx';
import { useLive } from '../../../api/live.ts';
import { WindowBar } from '../../../components/charts/window-bar.tsx';
import { Button } from '../../../components/forms/button.tsx';
import { Input } from '../../../components/forms/field.tsx';
import { type Column, DataTable } from '../../../components/layout/data-table.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { SecondLine } from '../../../components/layout/second-line.tsx';
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

/** The header with a customer's name can't contain these characters. */
const NOT_PRINTABLE = /[^\x20-\x7e]/g;

/** The open dialog for the window of a limit. */
interface Action {
  readonly kind: 'reset' | 'grant' | 'override';
  readonly limitId: string;
}

/** The live counters of all limits of the key, with their actions. */
export function KeyWindows({ apiKey, etag }: KeyWindowsProps) {
  const [action, setAction] = useState<Action>();
  const [customerId, setCustomerId] = useState('');
  const live = useKeyLimits(apiKey.consumerApiKeyId, customerId);
  const counter = live.data?.limits.find(({ limitId }) => limitId === action?.limitId);
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
        columns={columnsOf(setAction)}
        rowId={({ limitId }) => limitId}
        empty={<EmptyState title="No limit applies to this key" />}
      />
      {counter !== undefined && action !== undefined && (
        <ActionDialog
          kind={action.kind}
          {...{ apiKey, etag, counter, customerId }}
          onClose={() => setAction(undefined)}
        />
      )}
    </Panel>
  );
}

function useKeyLimits(consumerApiKeyId: string, customerId: string) {
  return useLive(
    ['key-limits', consumerApiKeyId, customerId],
    (client, signal) =>
      client.GET('/consumer-api-key/{consumerApiKeyId}/limits', {
        params: { path: { consumerApiKeyId }, query: customerId === '' ? {} : { customerId } },
        signal,
      }),
    { scope: 'keys:read' },
  );
}

interface ActionDialogProps extends KeyWindowsProps {
  readonly kind: Action['kind'];
  readonly counter: LimitCounter;
  readonly customerId: string;
  readonly onClose: () => void;
}

function ActionDialog({ kind, apiKey, etag, counter, customerId, onClose }: ActionDialogProps) {
  const keyId = apiKey.consumerApiKeyId;
  switch (kind) {
    case 'grant':
      return <GrantDialog {...{ counter, customerId, keyId, onClose }} />;
    case 'reset':
      return <ResetDialog {...{ counter, customerId, keyId, onClose }} />;
    case 'override':
      return <OverrideDialog {...{ apiKey, etag, counter, onClose }} />;
  }
}

function columnsOf(onAction: (action: Action) => void): readonly Column<LimitCounter>[] {
  return [
    { id: 'limit', header: 'Limit', cell: (counter) => <LimitCell counter={counter} /> },
    {
      id: 'used',
      header: 'Used',
      cell: (counter) => <WindowBar used={counter.used} limit={quotaOf(counter)} />,
    },
    { id: 'reset', header: 'Resets', wideOnly: true, cell: (counter) => <ResetCell counter={counter} /> },
    {
      id: 'actions',
      header: 'Actions',
      hiddenHeader: true,
      align: 'end',
      cell: ({ limitId }) => <Actions limitId={limitId} onAction={(kind) => onAction({ kind, limitId })} />,
    },
  ];
}

interface ActionsProps {
  readonly limitId: string;
  readonly onAction: (kind: Action['kind']) => void;
}

function Actions({ limitId, onAction }: ActionsProps) {
  const { can } = useScopes();
  return (
    <span className={styles.actions}>
      {can('limits:write') && (
        <>
          <Button small aria-label={`Grant ${limitId} more room`} onClick={() => onAction('grant')}>
            Grant
          </Button>
          <Button small aria-label={`Reset ${limitId}`} onClick={() => onAction('reset')}>
            Reset
          </Button>
        </>
      )}
      {can('keys:write') && (
        <Button small look="quiet" aria-label={`Override ${limitId}`} onClick={() => onAction('override')}>
          Override
        </Button>
      )}
    </span>
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
      <SecondLine>
        <ResetCell counter={counter} />
      </SecondLine>
    </>
  );
}

function ResetCell({ counter: { open, resetTime } }: { readonly counter: LimitCounter }) {
  if (open === null) return <span className={styles.faint}>not known</span>;
  if (!open) return <span className={styles.faint}>no window is open</span>;
  return <RelativeTime at={resetTime} />;
}
