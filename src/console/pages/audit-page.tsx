import { ArrowUp, ScrollText } from 'lucide-react';
import { useState } from 'react';
import { useScopes } from '../api/api-context.tsx';
import { AUDITED_EVENTS } from '../api/followed.ts';
import { type LivePages, useLivePages } from '../api/live-pages.ts';
import { useAddress } from '../api/use-address.ts';
import { Button, TextButton } from '../components/forms/button.tsx';
import { CsvButton } from '../components/forms/csv-button.tsx';
import { focusFilters } from '../components/forms/focus-filters.ts';
import { type Column, DataTable } from '../components/layout/data-table.tsx';
import { PageHeader } from '../components/layout/page-header.tsx';
import { SecondLine } from '../components/layout/second-line.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';
import { NoScope } from '../components/states/live-state.tsx';
import { PageLink } from '../components/text/page-link.tsx';
import { RelativeTime } from '../components/text/relative-time.tsx';
import { StatusBadge } from '../components/text/status-badge.tsx';
import { counted } from '../format/numbers.ts';
import styles from './audit/audit.module.css';
import { AuditEntryDialog } from './audit/audit-entry-dialog.tsx';
import { type AuditFilter, auditQuery, NO_FILTER, readAuditFilter } from './audit/audit-filter.ts';
import { AuditFilters } from './audit/audit-filters.tsx';
import {
  type AuditEntry,
  actionWords,
  actorId,
  actorName,
  changesInShort,
  targetPage,
} from './audit/audit-words.ts';
import { VerifyButton } from './audit/verify-button.tsx';

/** Who changed what, when and why. The filters are in the URL. */
export function AuditPage() {
  const { can } = useScopes();
  if (!can('audit:read')) return <NoScope what="the audit log" scope="audit:read" />;
  return <AuditLog />;
}

function AuditLog() {
  const [params, change] = useAddress();
  const [shown, setShown] = useState<AuditEntry>();
  const [clears, setClears] = useState(0);
  const filter = readAuditFilter(params);
  const isFiltered = Object.values(filter).some((value) => value !== '');
  const entries = useAuditEntries(filter);
  const clear = () => {
    change(NO_FILTER);
    setClears(clears + 1);
    focusFilters();
  };
  return (
    <>
      <PageHeader
        title="Audit log"
        about="Who changed what, when and why; who saw a secret, and what was not allowed."
        actions={
          <>
            <VerifyButton />
            <ExportButton filter={filter} />
          </>
        }
      />
      <AuditFilters {...{ filter, isFiltered, clears }} onChange={change} onClear={clear} />
      <Count entries={entries} />
      <NewEntries entries={entries} />
      <DataTable
        label="audit log"
        live={entries}
        columns={columnsOf(change, setShown)}
        rowId={({ auditId }) => auditId}
        onOpen={setShown}
        pages={entries}
        total={entries.total}
        empty={<NoEntries isFiltered={isFiltered} onClear={clear} />}
      />
      {shown !== undefined && <AuditEntryDialog entry={shown} onClose={() => setShown(undefined)} />}
    </>
  );
}

type Entries = LivePages<AuditEntry>;

function Count({ entries: { total, isFollowed } }: { readonly entries: Entries }) {
  if (total === undefined) return null;
  return (
    <p className={styles.count}>
      <span>{counted(total, 'entry', 'entries')}</span>
      {isFollowed && <span title="New entries appear as soon as they are made"> · live</span>}
    </p>
  );
}

interface NewEntriesProps {
  readonly entries: Pick<Entries, 'isBehind' | 'refresh'>;
}

/** Offers to read a long list again. It is not read by itself: the reader would lose the place. */
export function NewEntries({ entries: { isBehind, refresh } }: NewEntriesProps) {
  const show = () => {
    window.scrollTo(0, 0);
    focusFilters();
    refresh();
  };
  return (
    <div role="status" className={styles.behind}>
      {isBehind && (
        <Button small onClick={show}>
          <ArrowUp aria-hidden="true" />
          Show new entries
        </Button>
      )}
    </div>
  );
}

interface NoEntriesProps {
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}

function NoEntries({ isFiltered, onClear }: NoEntriesProps) {
  return isFiltered ? (
    <EmptyState title="No entry matches" action={<Button onClick={onClear}>Clear the filters</Button>} />
  ) : (
    <EmptyState icon={ScrollText} title="Nothing has happened yet">
      The first change of a key, a plan or a token appears here.
    </EmptyState>
  );
}

function useAuditEntries(filter: AuditFilter) {
  return useLivePages(
    ['audit', filter],
    (client, query, signal) =>
      client.GET('/tollgate/audit-log', {
        params: { query: { ...auditQuery(filter), format: 'json', count: 'true', ...query } },
        signal,
      }),
    {
      page: (body) => {
        // The body is a string only with `format=csv`.
        if (typeof body === 'string') return { rows: [] };
        return { rows: body.entries, total: body.total, nextCursor: body.nextCursor };
      },
      scope: 'audit:read',
      follows: AUDITED_EVENTS,
    },
  );
}

function ExportButton({ filter }: { readonly filter: AuditFilter }) {
  return (
    <CsvButton
      name="audit.csv"
      fetchCsv={(client) =>
        client.GET('/tollgate/audit-log', {
          params: { query: { ...auditQuery(filter), format: 'csv' } },
          parseAs: 'blob',
        })
      }
    />
  );
}

function columnsOf(
  onFilter: (fields: Partial<AuditFilter>) => void,
  onShow: (entry: AuditEntry) => void,
): readonly Column<AuditEntry>[] {
  return [
    { id: 'at', header: 'Time', wideOnly: true, cell: ({ at }) => <RelativeTime at={at} /> },
    {
      id: 'actor',
      header: 'Actor',
      wideOnly: true,
      cell: ({ actor }) => <Actor actor={actor} onFilter={onFilter} />,
    },
    {
      id: 'action',
      header: 'Action',
      cell: (entry) => (
        <>
          <TextButton className={styles.action} onClick={() => onShow(entry)}>
            {actionWords(entry.action)}
          </TextButton>
          <AuditSecondLine entry={entry} />
        </>
      ),
    },
    { id: 'target', header: 'Target', wideOnly: true, cell: ({ target }) => <Target target={target} /> },
    {
      id: 'changes',
      header: 'Changes',
      wideOnly: true,
      cell: (entry) => <Words text={changesInShort(entry)} />,
    },
    {
      id: 'reason',
      header: 'Reason',
      wideOnly: true,
      cell: ({ reason }) => <Words text={reason} />,
    },
    {
      id: 'outcome',
      header: 'Result',
      cell: ({ outcome }) =>
        outcome === 'success' ? (
          <StatusBadge tone="allowed">Done</StatusBadge>
        ) : (
          <StatusBadge tone="failed">{outcome.replaceAll('_', ' ')}</StatusBadge>
        ),
    },
  ];
}

/** Who did it to what and when. */
function AuditSecondLine({ entry: { actor, target, at } }: { readonly entry: AuditEntry }) {
  return (
    <SecondLine>
      <bdi>{actorName(actor)}</bdi> · <bdi>{target.name ?? target.id}</bdi> · <RelativeTime at={at} />
    </SecondLine>
  );
}

function Words({ text }: { readonly text: string | null }) {
  return (
    <bdi className={styles.words} title={text ?? undefined}>
      {text}
    </bdi>
  );
}

interface ActorProps {
  readonly actor: AuditEntry['actor'];
  readonly onFilter: (fields: Partial<AuditFilter>) => void;
}

function Actor({ actor, onFilter }: ActorProps) {
  const id = actorId(actor);
  const name = <bdi>{actorName(actor)}</bdi>;
  if (id === undefined) return name;
  return (
    <TextButton
      className={styles.action}
      title="Show only what they did"
      onClick={() => onFilter({ actorId: id })}
    >
      {name}
    </TextButton>
  );
}

function Target({ target }: { readonly target: AuditEntry['target'] }) {
  const page = targetPage(target);
  const name = <bdi>{target.name ?? target.id}</bdi>;
  return page === undefined ? name : <PageLink {...page}>{name}</PageLink>;
}
