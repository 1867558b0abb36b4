import { KeyRound } from 'lucide-react';
import { useId } from 'react';
import { Link } from 'wouter';
import { useApi } from '../../api/api-context.tsx';
import { useLivePages } from '../../api/live-pages.ts';
import { type Column, DataTable } from '../../components/layout/data-table.tsx';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { useNow } from '../../components/text/use-now.ts';
import { counted } from '../../format/numbers.ts';
import type { ListedKey } from '../keys/key-model.ts';
import { KeyStateBadge, keyState } from '../keys/key-state.tsx';
import styles from './plans.module.css';

/** The keys that are bound to a plan, last used first. */
export function BoundKeys({ rateLimitId }: { readonly rateLimitId: string }) {
  const heading = useId();
  const { onlyTags } = useApi().whoami;
  const keys = useBoundKeys(rateLimitId);
  return (
    <section aria-labelledby={heading}>
      <div className={styles.listHead}>
        <div>
          <h2 id={heading}>{keys.total === undefined ? 'Bound keys' : counted(keys.total, 'bound key')}</h2>
          <p>
            A change of the plan holds for each of them with its next request
            {onlyTags.length > 0 && ', and for keys that this token does not see'}.
          </p>
        </div>
        <Link href={`/keys?rateLimitId=${encodeURIComponent(rateLimitId)}`}>View in keys</Link>
      </div>
      <DataTable
        label="bound keys"
        live={keys}
        columns={COLUMNS}
        rowId={({ consumerApiKeyId }) => consumerApiKeyId}
        rowHref={({ consumerApiKeyId }) => `/keys/${consumerApiKeyId}`}
        pages={keys}
        total={keys.total}
        empty={
          <EmptyState icon={KeyRound} title="No key is bound to this plan">
            Choose the plan on the page of a key, or when a key is created.
          </EmptyState>
        }
      />
    </section>
  );
}

function useBoundKeys(rateLimitId: string) {
  return useLivePages(
    ['plan', rateLimitId, 'keys'],
    (client, query, signal) =>
      client.GET('/consumer-api-key', {
        params: {
          query: { ...query, rateLimitId, sort: 'lastUsedAt', order: 'desc', limit: 50, count: 'true' },
        },
        signal,
      }),
    { page: ({ apiKeys, total, nextCursor }) => ({ rows: apiKeys, total, nextCursor }), scope: 'keys:read' },
  );
}

const COLUMNS: readonly Column<ListedKey>[] = [
  {
    id: 'name',
    header: 'Key',
    cell: ({ consumerApiKeyId, name }) => (
      <Link href={`/keys/${consumerApiKeyId}`}>
        <bdi>{name}</bdi>
      </Link>
    ),
  },
  { id: 'hint', header: 'Secret', cell: ({ secretHint }) => <code>{secretHint}</code> },
  { id: 'status', header: 'Status', cell: (key) => <KeyStatus apiKey={key} /> },
  {
    id: 'used',
    header: 'Last used',
    cell: ({ lastUsedAt }) => <RelativeTime at={lastUsedAt} missing="Never used" />,
  },
];

function KeyStatus({ apiKey }: { readonly apiKey: ListedKey }) {
  return <KeyStateBadge state={keyState(apiKey, useNow())} />;
}
