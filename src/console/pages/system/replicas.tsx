import type { Live } from '../../api/live.ts';
import { type Column, DataTable } from '../../components/layout/data-table.tsx';
import { SecondLine } from '../../components/layout/second-line.tsx';
import { EmptyState } from '../../components/states/empty-state.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { StatusBadge } from '../../components/text/status-badge.tsx';
import { counted } from '../../format/numbers.ts';
import type { System } from './degraded.ts';

type Replica = System['replicas'][number];

const COLUMNS: readonly Column<Replica>[] = [
  {
    id: 'host',
    header: 'Host',
    cell: ({ host, replicaId, current, startedAt, pid, workers }) => (
      <>
        <span title={replicaId}>{host ?? replicaId}</span>{' '}
        {current && <StatusBadge tone="accent">this one</StatusBadge>}
        <SecondLine>
          started <RelativeTime at={startedAt} missing="at a time that is not known" />
          {pid !== null && ` · process ${pid}`}
          {workers !== null && ` · ${counted(workers, 'worker')}`}
        </SecondLine>
      </>
    ),
    sortBy: ({ host, replicaId }) => host ?? replicaId,
  },
  { id: 'state', header: 'State', cell: ({ degraded }) => <ReplicaState degraded={degraded} /> },
  {
    id: 'version',
    header: 'Version',
    cell: ({ version }) => version ?? 'older',
    sortBy: ({ version }) => version,
  },
  {
    id: 'started',
    header: 'Started',
    wideOnly: true,
    cell: ({ startedAt }) => <RelativeTime at={startedAt} missing="not known" />,
    sortBy: ({ startedAt }) => startedAt,
  },
  {
    id: 'seen',
    header: 'Last heartbeat',
    cell: ({ lastSeenAt }) => <RelativeTime at={lastSeenAt} />,
    sortBy: ({ lastSeenAt }) => lastSeenAt,
  },
  { id: 'pid', header: 'Process', cell: ({ pid }) => pid ?? '–', align: 'end', wideOnly: true },
  { id: 'workers', header: 'Workers', cell: ({ workers }) => workers ?? '–', align: 'end', wideOnly: true },
];

export function ReplicaTable({ live }: { readonly live: Live<readonly Replica[]> }) {
  return (
    <DataTable
      label="replicas"
      live={live}
      columns={COLUMNS}
      rowId={({ replicaId }) => replicaId}
      empty={<EmptyState title="No replica is known" />}
    />
  );
}

function ReplicaState({ degraded }: Pick<Replica, 'degraded'>) {
  if (degraded === null) return <StatusBadge tone="neutral">Not known</StatusBadge>;
  if (degraded.length === 0) return <StatusBadge tone="allowed">OK</StatusBadge>;
  return <StatusBadge tone="failed">Degraded: {degraded.join(', ')}</StatusBadge>;
}
