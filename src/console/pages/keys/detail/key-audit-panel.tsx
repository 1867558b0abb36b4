import { Link } from 'wouter';
import { useScopes } from '../../../api/api-context.tsx';
import { useLive } from '../../../api/live.ts';
import { type Column, DataTable } from '../../../components/layout/data-table.tsx';
import { Panel } from '../../../components/layout/panel.tsx';
import { SecondLine } from '../../../components/layout/second-line.tsx';
import { EmptyState } from '../../../components/states/empty-state.tsx';
import { RelativeTime } from '../../../components/text/relative-time.tsx';
import { type AuditEntry, actionWords, actorName } from '../../audit/audit-words.ts';

const COLUMNS: readonly Column<AuditEntry>[] = [
  { id: 'at', header: 'Time', cell: ({ at }) => <RelativeTime at={at} /> },
  {
    id: 'action',
    header: 'Action',
    cell: ({ action, actor, reason }) => (
      <>
        {actionWords(action)}
        <SecondLine>
          <bdi>{actorName(actor)}</bdi>
          {reason !== null && (
            <>
              {' · '}
              <bdi>{reason}</bdi>
            </>
          )}
        </SecondLine>
      </>
    ),
  },
  { id: 'actor', header: 'Actor', wideOnly: true, cell: ({ actor }) => <bdi>{actorName(actor)}</bdi> },
  {
    id: 'changes',
    header: 'Changes',
    cell: ({ changes }) => Object.keys(changes).join(', ') || '–',
  },
  { id: 'reason', header: 'Reason', wideOnly: true, cell: ({ reason }) => <bdi>{reason ?? '–'}</bdi> },
];

/** The latest changes of the key. */
export function KeyAuditPanel({ keyId }: { readonly keyId: string }) {
  const { can } = useScopes();
  const live = useLive(
    ['key-audit', keyId],
    (client, signal) =>
      client.GET('/tollgate/audit-log', {
        params: { query: { targetId: keyId, limit: 10, format: 'json' } },
        signal,
      }),
    { scope: 'audit:read', pollMs: 15_000 },
  );
  const entries = typeof live.data === 'object' ? live.data.entries : undefined;
  return (
    <Panel
      flush
      title="Audit log"
      action={can('audit:read') && <Link href={`/audit?targetId=${keyId}`}>All entries</Link>}
    >
      <DataTable
        label="Audit log"
        live={{ ...live, data: entries }}
        columns={COLUMNS}
        rowId={({ auditId }) => auditId}
        empty={<EmptyState title="Nothing was done to this key yet" />}
      />
    </Panel>
  );
}
