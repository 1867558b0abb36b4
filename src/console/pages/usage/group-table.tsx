import { ListFilter } from 'lucide-react';
import { useMemo } from 'react';
import { useLive } from '../../api/live.ts';
import { type Outcomes, outcomesOf } from '../../api/outcome-counts.ts';
import { readUsageSeries, type UsageRow } from '../../api/read-usage-series.ts';
import { Button } from '../../components/forms/button.tsx';
import { type Column, DataTable } from '../../components/layout/data-table.tsx';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { KeyName } from '../../components/text/key-name.tsx';
import { PageLink } from '../../components/text/page-link.tsx';
import { localTimeZone } from '../../format/exact-time.ts';
import { now } from '../../format/now.ts';
import { outcomeColumns } from './outcome-columns.tsx';
import styles from './usage.module.css';
import { GROUPINGS, type Grouping, isByUtcDay, queryOf, spanOf, type UsageView } from './usage-view.ts';

const MOST_GROUPS = 100;
const OTHERS = '__other__';

interface GroupRow extends Outcomes {
  /** Null if no plan applied. */
  readonly name: string | null;
  readonly keyName: UsageRow['consumerApiKeyName'];
}

interface GroupTableProps {
  readonly view: UsageView;
  readonly groupBy: Grouping;
  readonly onChange: (fields: Readonly<Record<string, string | undefined>>) => void;
}

/** The requests of a span by key, plan, endpoint or customer: the groups with the most requests, and the sum of the others. */
export function GroupTable({ view, groupBy, onChange }: GroupTableProps) {
  const live = useLive(
    ['usage', 'groups', view, localTimeZone()],
    (client, signal) => {
      const query = queryOf(view, spanOf(view, now()), isByUtcDay(groupBy) ? 'UTC' : localTimeZone());
      const zone = isByUtcDay(groupBy) ? { timeZone: 'UTC' } : {};
      return readUsageSeries(
        client,
        { ...query, ...zone, interval: 'total', groupBy, top: MOST_GROUPS },
        signal,
      );
    },
    { scope: 'usage:read' },
  );
  const rows = useMemo(
    () =>
      live.data?.rows
        .map(
          (row): GroupRow => ({
            name: groupName(row, groupBy),
            keyName: row.consumerApiKeyName,
            ...outcomesOf(row),
          }),
        )
        .toSorted((a, b) => b.requests - a.requests),
    [live.data, groupBy],
  );
  const most = Math.max(...(rows ?? []).map(({ requests }) => requests), 1);
  return (
    <div>
      {isByUtcDay(groupBy) && (
        <p className={styles.remark}>
          {GROUPINGS[groupBy]}s are counted by days of UTC: the table is about whole days, the first and the
          last one included.
        </p>
      )}
      <DataTable
        label={`usage by ${GROUPINGS[groupBy].toLowerCase()}`}
        live={{ ...live, data: rows }}
        columns={columnsOf(groupBy, most, onChange)}
        rowId={({ name }) => name ?? ''}
        empty={<EmptyState title="No requests in this time" />}
      />
    </div>
  );
}

function groupName(row: UsageRow, groupBy: Grouping): string | null {
  switch (groupBy) {
    case 'key':
      return row.consumerApiKeyId ?? '';
    case 'rateLimit':
      return row.rateLimitId ?? null;
    case 'endpoint':
      return row.endpoint ?? '';
    case 'customer':
      return row.customerId ?? '';
  }
}

function columnsOf(
  groupBy: Grouping,
  most: number,
  onChange: GroupTableProps['onChange'],
): readonly Column<GroupRow>[] {
  const filter = groupBy === 'key' ? 'consumerApiKeyId' : 'rateLimitId';
  const named: Column<GroupRow> = {
    id: 'name',
    header: GROUPINGS[groupBy],
    sortBy: ({ name, keyName }) => keyName ?? name,
    cell: ({ name, keyName }) => <GroupName groupBy={groupBy} name={name} keyName={keyName} />,
  };
  const share: Column<GroupRow> = {
    id: 'share',
    header: 'Share',
    hiddenHeader: true,
    wideOnly: true,
    cell: (row) => <OutcomeBar outcomes={row} most={most} />,
  };
  const only: Column<GroupRow> = {
    id: 'only',
    header: 'Show only this',
    hiddenHeader: true,
    align: 'end',
    cell: ({ name }) =>
      name !== null &&
      name !== OTHERS && (
        <Button
          look="quiet"
          small
          icon
          aria-label={`Show only ${name}`}
          title="Show only this"
          onClick={() => onChange({ [filter]: name, groupBy: undefined })}
        >
          <ListFilter aria-hidden="true" />
        </Button>
      ),
  };
  return [named, share, ...outcomeColumns<GroupRow>(), ...(isByUtcDay(groupBy) ? [] : [only])];
}

interface GroupNameProps extends Pick<GroupRow, 'name' | 'keyName'> {
  readonly groupBy: Grouping;
}

function GroupName({ groupBy, name, keyName }: GroupNameProps) {
  if (name === null) return <>no plan</>;
  if (name === OTHERS) return <>all others</>;
  switch (groupBy) {
    case 'key':
      return <KeyName id={name} name={keyName} />;
    case 'rateLimit':
      return (
        <PageLink scope="plans:read" href={`/plans/${encodeURIComponent(name)}`}>
          {name}
        </PageLink>
      );
    case 'endpoint':
      return (
        <bdi title={name}>
          <code>{name}</code>
        </bdi>
      );
    case 'customer':
      return <bdi title={name}>{name}</bdi>;
  }
}

/** The outcomes of a group, relative to the largest one. Hidden from screen readers: the row has the numbers. */
function OutcomeBar({ outcomes, most }: { readonly outcomes: Outcomes; readonly most: number }) {
  const { allowed, limited, failed } = outcomes;
  const scale = 100 / most;
  return (
    <svg className={styles.bar} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect className={styles.allowed} width={allowed * scale} height="8" />
      <rect className={styles.limited} x={allowed * scale} width={limited * scale} height="8" />
      <rect className={styles.failed} x={(allowed + limited) * scale} width={failed * scale} height="8" />
    </svg>
  );
}
