import { KeyRound, Plus, SearchX } from 'lucide-react';
import { useMemo } from 'react';
import { useSearchParams } from 'wouter';
import { useApi, useScopes } from '../api/api-context.tsx';
import { useLive } from '../api/live.ts';
import { useLivePages } from '../api/live-pages.ts';
import { Button, TextButton } from '../components/forms/button.tsx';
import { focusFilters } from '../components/forms/focus-filters.ts';
import { DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { counted } from '../format/numbers.ts';
import { BulkBar } from './keys/bulk/bulk-bar.tsx';
import { useKeySelection } from './keys/bulk/key-selection.tsx';
import { RunningJobs } from './keys/bulk/running-jobs.tsx';
import { CreateKeyDialog } from './keys/change/create-key-dialog.tsx';
import { KEY_COLUMNS } from './keys/list/key-columns.tsx';
import { type KeyFilter, type KeyListQuery, useKeyFilter } from './keys/list/key-filter.ts';
import { KeyFilters } from './keys/list/key-filters.tsx';
import styles from './keys/list/keys-page.module.css';
import { TryKeyButton } from './keys/try/try-key-dialog.tsx';

/** The list of keys: active ones, unless another state is chosen. */
export function KeysPage() {
  const { can } = useScopes();
  const filter = useKeyFilter();
  const [params, setParams] = useSearchParams();
  const isCreating = params.get('create') === 'true' && can('keys:write');
  const create = (on: boolean) =>
    setParams((before) => {
      const next = new URLSearchParams(before);
      if (on) next.set('create', 'true');
      else next.delete('create');
      return next;
    });
  const list = useLivePages(
    ['keys', filter.query],
    (client, query, signal) =>
      client.GET('/consumer-api-key', {
        params: { query: { ...filter.query, ...query, ...countOfFirst(query), include: 'usage,limits' } },
        signal,
      }),
    { page: ({ apiKeys, total, nextCursor }) => ({ rows: apiKeys, total, nextCursor }), scope: 'keys:read' },
  );
  const selection = useKeySelection(filter.query);
  const columns = useMemo(
    () => (selection.column === undefined ? KEY_COLUMNS : [selection.column, ...KEY_COLUMNS]),
    [selection.column],
  );
  const newKey = can('keys:write') && (
    <Button look="primary" onClick={() => create(true)}>
      <Plus aria-hidden="true" />
      Create key
    </Button>
  );
  return (
    <>
      <PageHeader
        title="Keys"
        actions={
          <>
            <TryKeyButton />
            {newKey}
          </>
        }
      />
      <RunningJobs />
      <KeyFilters filter={filter} />
      <Count shown={list.total} filter={filter} />
      <BulkBar selection={selection} filter={filter.query} total={list.total} />
      <DataTable
        label="Keys"
        live={list}
        columns={columns}
        rowId={(key) => key.consumerApiKeyId}
        rowHref={(key) => `/keys/${key.consumerApiKeyId}`}
        sort={filter.sort}
        onSort={filter.setSort}
        pages={list}
        total={list.total}
        empty={<NoKeys filter={filter} onCreate={can('keys:write') ? () => create(true) : undefined} />}
      />
      {isCreating && <CreateKeyDialog onClose={() => create(false)} />}
    </>
  );
}

/** The total is requested only with the first page. */
function countOfFirst({ cursor }: { readonly cursor?: string }): KeyListQuery {
  return cursor === undefined ? { count: 'true' } : {};
}

function Count({ shown, filter }: { readonly shown: number | undefined; readonly filter: KeyFilter }) {
  const isDefault = filter.get('status') === '';
  const hidden = useLive(
    ['keys-hidden', filter.everyState],
    (client, signal) =>
      client.GET('/consumer-api-key', {
        params: { query: { ...filter.everyState, status: 'disabled,expired', limit: 1, count: 'true' } },
        signal,
      }),
    { scope: 'keys:read', enabled: isDefault, pollMs: 30_000 },
  ).data?.total;
  const showAll = () => {
    filter.set('status', 'all');
    focusFilters();
  };
  return (
    <p className={styles.count} role="status">
      {shown !== undefined && counted(shown, 'key')}
      {isDefault && hidden !== undefined && hidden > 0 && (
        <>
          {' '}
          · {counted(hidden, 'disabled or expired key')} not shown{' '}
          <TextButton onClick={showAll}>Show all</TextButton>
        </>
      )}
    </p>
  );
}

interface NoKeysProps {
  readonly filter: KeyFilter;
  readonly onCreate: (() => void) | undefined;
}

function NoKeys({ filter, onCreate }: NoKeysProps) {
  const { whoami } = useApi();
  if (filter.isFiltered)
    return (
      <EmptyState
        icon={SearchX}
        title="No key matches"
        action={<Button onClick={filter.clear}>Clear filters</Button>}
      >
        Nothing has all that you search for.
      </EmptyState>
    );
  return (
    <EmptyState
      icon={KeyRound}
      title="No keys yet"
      action={
        onCreate !== undefined && (
          <Button look="primary" onClick={onCreate}>
            Create the first key
          </Button>
        )
      }
    >
      A consumer sends its key with each request, as{' '}
      <code>Authorization: Bearer {whoami.settings.keyPrefix}_…</code>
    </EmptyState>
  );
}
