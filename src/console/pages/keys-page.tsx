import { KeyRound, Plus, SearchX, X } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useSearchParams } from 'wouter';
import { useApi, useScopes } from '../api/api-context.tsx';
import { useLive, useLivePages } from '../api/live.ts';
import { Button } from '../components/forms/button.tsx';
import { Input, Select } from '../components/forms/field.tsx';
import { DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { counted } from '../format/numbers.ts';
import { CreateKeyDialog } from './keys/change/create-key-dialog.tsx';
import { KEY_COLUMNS } from './keys/list/key-columns.tsx';
import { type KeyFilter, type KeyListQuery, STATES, useKeyFilter } from './keys/list/key-filter.ts';
import styles from './keys/list/keys-page.module.css';
import { usePlanIds } from './keys/plan-ids.ts';

const PAGE_KEYS = 100;
const TYPING_MS = 250;

/** All keys, those that may be used now unless another state is chosen. */
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
    (client, cursor, signal) =>
      client.GET('/consumer-api-key', {
        params: { query: { ...filter.query, ...pageQuery(cursor), include: 'usage,limits' } },
        signal,
      }),
    ({ apiKeys, total, nextCursor }) => ({ rows: apiKeys, total, nextCursor }),
    { scope: 'keys:read' },
  );
  const newKey = can('keys:write') && (
    <Button look="primary" onClick={() => create(true)}>
      <Plus aria-hidden="true" />
      Create key
    </Button>
  );
  return (
    <>
      <PageHeader title="Keys" actions={newKey} />
      <KeyFilters filter={filter} />
      <Count shown={list.total} filter={filter} />
      <DataTable
        label="Keys"
        live={list}
        columns={KEY_COLUMNS}
        rowId={(key) => key.consumerApiKeyId}
        rowHref={(key) => `/keys/${key.consumerApiKeyId}`}
        sort={filter.sort}
        onSort={filter.setSort}
        hasMore={list.hasMore}
        loadMore={list.loadMore}
        total={list.total}
        empty={<NoKeys filter={filter} onCreate={can('keys:write') ? () => create(true) : undefined} />}
      />
      {isCreating && <CreateKeyDialog onClose={() => create(false)} />}
    </>
  );
}

/** The total is counted with the first page only. */
function pageQuery(cursor: string | undefined): KeyListQuery {
  return { limit: PAGE_KEYS, ...(cursor === undefined ? { count: 'true' } : { cursor }) };
}

/** Filters that other pages link to, and that can only be removed here. */
const CHIPS = [
  { field: 'tag', label: 'Tag' },
  { field: 'externalId', label: 'Owner' },
  { field: 'unusedSince', label: 'Not used since' },
  { field: 'createdBefore', label: 'Created before' },
  { field: 'expiresBefore', label: 'Expires before' },
] as const;

function KeyFilters({ filter }: { readonly filter: KeyFilter }) {
  const { can } = useScopes();
  return (
    <search className={styles.filters}>
      <SearchInput value={filter.get('q')} onChange={(text) => filter.set('q', text)} />
      <Select
        className={styles.filter}
        aria-label="State"
        value={filter.get('status') || 'active'}
        onChange={({ target }) => filter.set('status', target.value === 'active' ? '' : target.value)}
      >
        {STATES.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </Select>
      {can('plans:read') && <PlanSelect filter={filter} />}
      {CHIPS.map(({ field, label }) => (
        <Chip key={field} name={label} value={filter.get(field)} onRemove={() => filter.set(field, '')} />
      ))}
      {(filter.isFiltered || filter.sort.column !== 'createdAt') && (
        <Button look="quiet" onClick={filter.clear}>
          {filter.isFiltered ? 'Clear filters' : 'Newest first'}
        </Button>
      )}
    </search>
  );
}

function PlanSelect({ filter }: { readonly filter: KeyFilter }) {
  const plans = usePlanIds();
  return (
    <Select
      className={styles.filter}
      aria-label="Plan"
      value={filter.get('rateLimitId')}
      onChange={({ target }) => filter.set('rateLimitId', target.value)}
    >
      <option value="">Any plan</option>
      {plans.map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </Select>
  );
}

interface SearchInputProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** Asks when the typing has paused. */
function SearchInput({ value, onChange }: SearchInputProps) {
  const [text, setText] = useState(value);
  const [asked, setAsked] = useState(value);
  // The address has changed by other means: the way back, or "Clear filters".
  if (asked !== value) {
    setAsked(value);
    setText(value);
  }
  useEffect(() => {
    if (text.trim() === asked) return;
    const timer = setTimeout(() => {
      setAsked(text.trim());
      onChange(text.trim());
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, asked, onChange]);
  return (
    <Input
      type="search"
      className={styles.search}
      aria-label="Search keys"
      placeholder="Search by name, owner, id or hint"
      maxLength={255}
      value={text}
      onChange={({ target }) => setText(target.value)}
    />
  );
}

interface ChipProps {
  readonly name: string;
  readonly value: string;
  readonly onRemove: () => void;
}

/** A filter that a link has set. */
function Chip({ name, value, onRemove }: ChipProps) {
  if (value === '') return null;
  return (
    <span className={styles.chip}>
      {name}: <bdi>{value}</bdi>
      <Button look="quiet" small icon aria-label={`Remove the filter ${name}`} onClick={onRemove}>
        <X aria-hidden="true" />
      </Button>
    </span>
  );
}

/** How many are shown, and how many keys that can't be used are left out. */
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
  return (
    <p className={styles.count} role="status">
      {shown !== undefined && counted(shown, 'key')}
      {isDefault && hidden !== undefined && hidden > 0 && (
        <>
          {' '}
          · {counted(hidden, 'disabled or expired key')} not shown{' '}
          <button type="button" className={styles.link} onClick={() => filter.set('status', 'all')}>
            Show all
          </button>
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
