import type { AuditLog } from '../../audit/audit-log.ts';
import type { Backlog } from '../../events/delivery/delivery.ts';
import type { KeyCache } from '../../keys/cache/key-cache.ts';
import type { KeyRevalidator } from '../../keys/cache/key-revalidator.ts';
import type { CostSettler } from '../../limiter/cost-settler.ts';
import type { Readiness } from '../../observability/readiness.ts';
import { counter, gauge, labelled, type Reading } from '../../observability/reading.ts';
import type { Clock } from '../../platform/clock.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import type { Proxy as ProxiedSide } from '../../proxy/pipeline.ts';
import type { ConnectionLimit } from '../../server/connections/connection-limit.ts';
import type { People } from '../../sign-in/people.ts';
import type { Usage } from '../../usage/create-usage.ts';
import type { ClientLimits } from '../client-limits.ts';
import type { Counting } from '../stores/counting.ts';
import type { RecordChangePaths } from '../wiring/wire-changes.ts';
import type { WiredEvents } from '../wiring/wire-events.ts';
import { backendReadings } from './backend-readings.ts';
import { sharedLimiterReadings } from './limiter-readings.ts';
import { usageReadings } from './usage-readings.ts';

/** The parts whose metrics are shown. */
export interface MeasuredParts {
  readonly counting: Counting;
  readonly costSettler: Pick<CostSettler, 'counts'>;
  readonly keys: KeyCache;
  readonly revalidator: Pick<KeyRevalidator, 'checked' | 'outdated'>;
  readonly usage: Usage;
  readonly changes: Pick<RecordChangePaths, 'waiting'>;
  readonly proxy: ProxiedSide;
  /** Undefined: no identity provider is set. */
  readonly people: Pick<People, 'signIn'> | undefined;
  readonly delivering: WiredEvents['delivering'];
  readonly clock: Clock;
  readonly readiness: Readiness;
  readonly records: { readonly audit: Pick<AuditLog, 'lastHead'> };
  /** The version of this gateway. */
  readonly version: string;
  readonly backendConnections: number;
  readonly connectionLimits: ClientLimits;
}

/** Every metric of the gateway except those of its requests. `docs/metrics.md` describes them. */
export function gatewayReadings(parts: MeasuredParts): readonly Reading[] {
  const { counting, costSettler, usage, proxy } = parts;
  return [
    ...(counting.shared === undefined ? [] : sharedLimiterReadings(counting.shared)),
    counter(
      'tollgate_reported_costs_total',
      'Costs that the backend was to report in its responses, by result: settled, missing, malformed, or failed: Redis may lack the difference.',
      () => labelled('result', costSettler.counts),
    ),
    ...changeReadings(parts),
    ...webhookReadings(parts),
    ...thresholdReadings(parts),
    ...keyReadings(parts),
    ...usageReadings(() => usage.stats),
    ...clientReadings(parts.connectionLimits),
    ...backendReadings(proxy, parts.backendConnections),
    auditReading(parts),
    ...signInReadings(parts),
    ...stateReadings(parts),
  ];
}

function changeReadings({ changes: { waiting } }: MeasuredParts): readonly Reading[] {
  if (waiting === undefined) return [];
  return [
    gauge(
      'tollgate_changes_waiting',
      'Changes of keys and plans that Redis has not got for more than five seconds, of all replicas, as Postgres counts them; 10000 at most.',
      waiting,
      'max',
    ),
  ];
}

/** No values but attempts where another replica delivers. */
function webhookReadings({ delivering: { deliverer, task }, clock }: MeasuredParts): readonly Reading[] {
  const ofBacklog = (name: string, help: string, numberOf: (backlog: Backlog) => number): Reading =>
    gauge(name, help, () => (task.backlog === undefined ? [] : [[{}, numberOf(task.backlog)]]), 'max');
  return [
    counter('tollgate_webhook_attempts_total', 'Requests to webhooks by outcome: succeeded or failed.', () =>
      labelled('outcome', deliverer.attempts),
    ),
    ofBacklog(
      'tollgate_webhook_deliveries_pending',
      'Deliveries to webhooks that are to be made or tried again, as Postgres counts them; 10000 at most.',
      ({ pending }) => pending,
    ),
    ofBacklog(
      'tollgate_webhook_oldest_pending_seconds',
      'How long the oldest of the pending deliveries that are counted has waited.',
      ({ oldestAtMs }) => (oldestAtMs === null ? 0 : Math.max(0, clock.nowMs() - oldestAtMs) / 1000),
    ),
    ofBacklog(
      'tollgate_webhooks_disabled',
      'Webhooks that the gateway disabled because their endpoints are gone or have failed for days.',
      ({ disabled }) => disabled,
    ),
  ];
}

function thresholdReadings({ delivering: { thresholdEvents } }: MeasuredParts): readonly Reading[] {
  if (thresholdEvents === undefined) return [];
  return [
    counter(
      'tollgate_threshold_events_dropped_total',
      'Events of thresholds that were dropped because Postgres or Redis did not take them in time.',
      () => thresholdEvents.dropped,
    ),
  ];
}

function keyReadings({ keys, revalidator }: MeasuredParts): readonly Reading[] {
  return [
    counter(
      'tollgate_key_cache_lookups_total',
      'Requests whose key was looked for in memory: hit, or miss, which asks Postgres.',
      () => labelled('result', { hit: keys.hits, miss: keys.misses }),
    ),
    counter(
      'tollgate_key_cache_checks_total',
      'Keys in memory that were compared with Postgres: current, or outdated and thrown away.',
      () => {
        const { checked, outdated } = revalidator;
        return labelled('result', { current: checked - outdated, outdated });
      },
    ),
    gauge('tollgate_key_cache_entries', 'Consumer keys held in the memory of this process.', () => keys.size),
  ];
}

function clientReadings({ public: clients, admin, authorize }: ClientLimits): readonly Reading[] {
  const ofPorts = (read: (limit: ConnectionLimit) => number) => () =>
    Object.entries({
      public: clients,
      ...(admin !== undefined && { admin }),
      ...(authorize !== undefined && { authorize }),
    }).map(([port, limit]) => [{ port }, read(limit)] as const);
  return [
    gauge(
      'tollgate_client_connections',
      'Connections of clients that are open now, by port: public, admin or authorize.',
      ofPorts(({ open }) => open),
    ),
    gauge(
      'tollgate_client_connections_limit',
      'Most connections of clients that may be open at the same time, which follows from the limit of open files.',
      ofPorts(({ most }) => most),
    ),
    counter(
      'tollgate_client_connections_rejected_total',
      'Connections of clients that were closed at once because there were as many as there may be.',
      ofPorts(({ rejected }) => rejected),
    ),
    counter(
      'tollgate_client_connections_evicted_total',
      'Idle connections of clients that were closed because new ones needed room.',
      ofPorts(({ evicted }) => evicted),
    ),
    counter(
      'tollgate_client_connections_flooded_total',
      'Connections of clients that were closed because too many pipelined requests waited.',
      ofPorts(({ flooded }) => flooded),
    ),
  ];
}

function signInReadings({ people }: MeasuredParts): readonly Reading[] {
  if (people === undefined) return [];
  return [
    counter(
      'tollgate_sign_ins_total',
      'Attempts of people to sign in with the identity provider, by outcome.',
      () => labelled('outcome', people.signIn.outcomes),
    ),
  ];
}

/** No value before this replica has read the head. */
function auditReading({ records }: MeasuredParts): Reading {
  return gauge(
    'tollgate_audit_log_head',
    'Entries ever written to the audit log, with the hash and the time of the newest, as this process last reported or verified it.',
    () => {
      const { lastHead } = records.audit;
      if (lastHead === undefined) return [];
      const { count, hash, atMs } = lastHead;
      return [[{ hash, at: atMs === null ? '' : isoSeconds(atMs) }, count]];
    },
    'max',
  );
}

function stateReadings({ readiness, version }: MeasuredParts): readonly Reading[] {
  return [
    gauge('tollgate_ready', '1 while the replica is ready for traffic, otherwise 0.', () =>
      Number(readiness.last().ready),
    ),
    gauge(
      'tollgate_component_up',
      '1 for each component (postgres, redis, ...) that passed its last check, otherwise 0.',
      () =>
        Object.entries(readiness.last().components)
          // `replica` says that this replica shuts down; it is not a component.
          .filter(([component]) => component !== 'replica')
          .map(([component, state]) => [{ component }, Number(state === 'ok')] as const),
      'min',
    ),
    gauge('tollgate_build_info', '1 for each process, with the versions of the gateway and of Node.', () => [
      [{ version, node: process.version }, 1],
    ]),
  ];
}
