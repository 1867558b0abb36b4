import { useMemo } from 'react';
import type { Live } from '../../api/live.ts';
import { type Outcomes, outcomesOf } from '../../api/outcome-counts.ts';
import type { UsageSeries } from '../../api/read-usage-series.ts';
import { bucketName } from '../../components/charts/bucket-name.ts';
import { TextButton } from '../../components/forms/button.tsx';
import { type Column, DataTable } from '../../components/layout/data-table.tsx';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { outcomeColumns } from './outcome-columns.tsx';
import type { UsageView } from './usage-view.ts';

interface BucketRow extends Outcomes {
  readonly start: number;
}

interface BucketTableProps {
  readonly live: Live<UsageSeries>;
  readonly view: UsageView;
  readonly onMark: (start: number) => void;
}

/** The buckets that have requests, latest first. */
export function BucketTable({ live, view, onMark }: BucketTableProps) {
  const rows = useMemo(
    () =>
      live.data?.rows
        .map((row): BucketRow => ({ start: Date.parse(row.start), ...outcomesOf(row) }))
        .toReversed(),
    [live.data],
  );
  const labels = view.interval === 'hour' ? 'time' : 'date';
  const zone = live.data?.timeZone;
  const columns: readonly Column<BucketRow>[] = [
    {
      id: 'start',
      header: 'From',
      sortBy: ({ start }) => start,
      cell: ({ start }) => (
        <TextButton onClick={() => onMark(start)}>{bucketName(start, labels, zone)}</TextButton>
      ),
    },
    ...outcomeColumns<BucketRow>(),
  ];
  return (
    <DataTable
      label="usage by time"
      live={{ ...live, data: rows }}
      columns={columns}
      rowId={({ start }) => String(start)}
      onOpen={({ start }) => onMark(start)}
      empty={<EmptyState title="No requests in this time" />}
    />
  );
}
