import { Facts } from '../../components/layout/facts.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { StatusBadge } from '../../components/text/status-badge.tsx';
import { counted, formatNumber } from '../../format/numbers.ts';
import type { System } from './degraded.ts';

interface Reachable {
  readonly reachable: boolean;
  readonly latencyMs: number | null;
  readonly fault: string | null;
}

/** "OK · 1.2 ms", or the fault. */
function ReachableBadge({ reachable, latencyMs, fault }: Reachable) {
  if (!reachable) return <StatusBadge tone="failed">Does not respond</StatusBadge>;
  if (fault !== null) return <StatusBadge tone="limited">Unhealthy</StatusBadge>;
  return (
    <StatusBadge tone="allowed">
      OK{latencyMs !== null && ` · ${formatNumber(Math.round(latencyMs * 10) / 10)} ms`}
    </StatusBadge>
  );
}

export function PostgresPanel({ postgres }: { readonly postgres: System['stores']['postgres'] }) {
  const { fault, embedded, version, migrations } = postgres;
  return (
    <Panel title="Postgres" about="Keys, plans, usage, audit log" action={<ReachableBadge {...postgres} />}>
      <Facts
        facts={[
          ...(fault === null ? [] : [['Fault', fault] as const]),
          ['Version', version ?? 'not known now'],
          ['Runs', embedded ? 'in the gateway’s own process, for one machine' : 'as a server'],
          ['Migrations', <Migrations key="migrations" migrations={migrations} />],
        ]}
      />
    </Panel>
  );
}

function Migrations({ migrations }: Pick<System['stores']['postgres'], 'migrations'>) {
  if (migrations === null) return 'not known now';
  const { applied, pending } = migrations;
  const last = applied.at(-1);
  if (pending.length > 0)
    return <StatusBadge tone="limited">{counted(pending.length, 'migration')} pending</StatusBadge>;
  return `${formatNumber(applied.length)} applied${last === undefined ? '' : `, the last is ${last}`}`;
}

export function RedisPanel({ redis }: { readonly redis: System['stores']['redis'] }) {
  if (redis === null)
    return (
      <Panel
        title="Redis"
        about="Limits and live usage"
        action={<StatusBadge tone="neutral">Not used</StatusBadge>}
      >
        <p>This one process counts limits and usage by itself. Several replicas need Redis.</p>
      </Panel>
    );
  const { fault, mode, servers } = redis;
  return (
    <Panel title="Redis" about="Limits and live usage" action={<ReachableBadge {...redis} />}>
      <Facts
        facts={[
          ...(fault === null ? [] : [['Fault', fault] as const]),
          ['Mode', mode],
          ...servers.map(
            ({ address, version, role, evictionPolicy, appendOnly }) =>
              [
                address,
                `${version}, ${role}, ${evictionPolicy}, append-only file ${appendOnly ? 'on' : 'off'}`,
              ] as const,
          ),
        ]}
      />
    </Panel>
  );
}

export function BackendPanel({ backend }: { readonly backend: NonNullable<System['backend']> }) {
  return (
    <Panel title="Backend" about="Where requests are forwarded to" action={<ReachableBadge {...backend} />}>
      <Facts
        facts={[
          ...(backend.fault === null ? [] : [['Fault', backend.fault] as const]),
          ['Address', <code key="address">{backend.address}</code>],
        ]}
      />
    </Panel>
  );
}

interface UsagePanelProps {
  readonly usage: System['usage'];
  /** As the gateway judges it. */
  readonly isLate: boolean;
}

export function UsagePanel({ usage, isLate }: UsagePanelProps) {
  const { flushIntervalSeconds, pendingSeconds, oldestPendingAt, lastFlushAt } = usage;
  return (
    <Panel
      title="Usage"
      about="From memory to Postgres"
      action={<LatenessBadge isKnown={pendingSeconds !== null} isLate={isLate} />}
    >
      <Facts
        facts={[
          ['Written every', `${formatNumber(flushIntervalSeconds)} s`],
          [
            'Waiting since',
            <RelativeTime
              key="oldest"
              at={oldestPendingAt}
              missing={pendingSeconds === null ? 'not known now' : 'nothing waits'}
            />,
          ],
          ['Last written', <RelativeTime key="last" at={lastFlushAt} missing="not yet by this replica" />],
        ]}
      />
    </Panel>
  );
}

function LatenessBadge({ isKnown, isLate }: { readonly isKnown: boolean; readonly isLate: boolean }) {
  if (isLate) return <StatusBadge tone="limited">Late</StatusBadge>;
  if (!isKnown) return <StatusBadge tone="neutral">Not known</StatusBadge>;
  return <StatusBadge tone="allowed">On time</StatusBadge>;
}
