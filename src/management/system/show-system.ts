import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { Endpoint, ResponseSchema } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import {
  DEGRADABLE,
  type PostgresStatus,
  type Reachability,
  type RedisStatus,
  type ReplicaStatus,
  type UsageStatus,
} from './system-report.ts';

const YES_OR_NO: ResponseSchema = { type: 'boolean' };
const DEGRADED = listOf({ type: 'string', enum: DEGRADABLE });

const REACHABILITY = {
  reachable: YES_OR_NO,
  latencyMs: { ...orNull({ type: 'number', minimum: 0 }), description: 'Null: it did not respond.' },
  fault: { ...orNull(TEXT), description: 'Why it is unhealthy. Null: it is healthy.' },
};

const REPLICA = named(
  'SystemReplica',
  objectOf({
    replicaId: TEXT,
    current: { ...YES_OR_NO, description: 'Whether this replica sent the response.' },
    lastSeenAt: INSTANT,
    startedAt: orNull(INSTANT),
    version: { ...orNull(TEXT), description: 'Null: of an older version, which does not say more.' },
    host: orNull(TEXT),
    pid: orNull(COUNT),
    workers: {
      ...orNull(COUNT),
      description: 'WORKERS: the number of replicas of the host that share its ports.',
    },
    degraded: {
      ...orNull(DEGRADED),
      description: 'What did not work for this replica at its last heartbeat; empty = nothing.',
    },
  }),
);

const POSTGRES = named(
  'SystemPostgres',
  objectOf({
    ...REACHABILITY,
    embedded: YES_OR_NO,
    version: orNull(TEXT),
    migrations: orNull(named('SystemMigrations', objectOf({ applied: listOf(TEXT), pending: listOf(TEXT) }))),
  }),
);

const REDIS = named(
  'SystemRedis',
  objectOf({
    ...REACHABILITY,
    mode: { type: 'string', enum: ['single', 'sentinel', 'cluster'] },
    servers: {
      ...listOf(
        named(
          'SystemRedisServer',
          objectOf({
            address: TEXT,
            version: TEXT,
            role: TEXT,
            evictionPolicy: TEXT,
            appendOnly: YES_OR_NO,
          }),
        ),
      ),
      description: 'Of a cluster its masters. Empty while they do not respond.',
    },
  }),
);

const USAGE = named(
  'SystemUsage',
  objectOf({
    flushIntervalSeconds: { type: 'number', minimum: 0 },
    oldestPendingAt: {
      ...orNull(INSTANT),
      description: 'Of the oldest counts that are not in Postgres yet.',
    },
    pendingSeconds: {
      ...orNull(COUNT),
      description: 'The age of those; 0 when none wait, null while that can not be known.',
    },
    lastFlushAt: {
      ...orNull(INSTANT),
      description: 'When this replica last moved all that was due.',
    },
  }),
);

/** Shows which replicas are live and whether their stores and the backend respond: for the console, and for `tollgate doctor`. */
export const showSystem: Endpoint = {
  method: 'get',
  path: '/tollgate/system',
  operationId: 'showSystem',
  summary: 'Show the replicas, and how the stores and the backend are',
  // The report shows how the gateway is set up, like the plans.
  scope: 'plans:read',
  status: 200,
  response: named(
    'System',
    objectOf({
      at: INSTANT,
      version: { ...TEXT, description: 'Of the replica that responds.' },
      degraded: {
        ...DEGRADED,
        description: 'What does not work now, seen from this replica; empty = nothing.',
      },
      replicas: {
        ...listOf(REPLICA),
        description: 'This one first, 200 at most. While Redis does not respond only this one.',
      },
      liveReplicas: { ...orNull(COUNT), description: 'Null while Redis does not respond.' },
      stores: objectOf({
        postgres: POSTGRES,
        redis: { ...orNull(REDIS), description: 'Null: the process counts by itself.' },
      }),
      usage: USAGE,
      backend: {
        ...orNull(named('SystemBackend', objectOf({ ...REACHABILITY, address: TEXT }))),
        description: 'Null: there is none, the gateway only decides.',
      },
    }),
  ),
  errors: [],
  async handle(_call, { system }) {
    const report = await system.read();
    return {
      at: isoSeconds(report.atMs),
      version: report.version,
      degraded: report.degraded,
      replicas: report.replicas.map(shownReplica),
      liveReplicas: report.liveReplicas ?? null,
      stores: {
        postgres: shownPostgres(report.postgres),
        redis: report.redis === undefined ? null : shownRedis(report.redis),
      },
      usage: shownUsage(report.usage, report.atMs),
      backend: report.backend && {
        ...shownReachability(report.backend),
        address: report.backend.address,
      },
    };
  },
};

function shownReplica({ replicaId, isThis, lastSeenAtMs, startedAtMs, ...said }: ReplicaStatus): object {
  return {
    replicaId,
    current: isThis,
    lastSeenAt: isoSeconds(lastSeenAtMs),
    startedAt: isoSecondsOrNull(startedAtMs),
    version: said.version ?? null,
    host: said.host ?? null,
    pid: said.pid ?? null,
    workers: said.workers ?? null,
    degraded: said.degraded ?? null,
  };
}

function shownReachability({ isReachable, latencyMs, fault }: Reachability): object {
  return { reachable: isReachable, latencyMs: latencyMs ?? null, fault: fault ?? null };
}

function shownPostgres({ isEmbedded, version, migrations, ...reachability }: PostgresStatus): object {
  return {
    ...shownReachability(reachability),
    embedded: isEmbedded,
    version: version ?? null,
    migrations: migrations ?? null,
  };
}

function shownRedis({ mode, servers, ...reachability }: RedisStatus): object {
  return {
    ...shownReachability(reachability),
    mode,
    servers: servers.map(({ isAppendOnly, ...server }) => ({ ...server, appendOnly: isAppendOnly })),
  };
}

function shownUsage(
  { flushIntervalMs, oldestPendingAtMs, lastFlushAtMs }: UsageStatus,
  nowMs: number,
): object {
  const pendingMs = typeof oldestPendingAtMs === 'number' ? Math.max(0, nowMs - oldestPendingAtMs) : 0;
  return {
    flushIntervalSeconds: flushIntervalMs / 1000,
    oldestPendingAt: isoSecondsOrNull(oldestPendingAtMs),
    pendingSeconds: oldestPendingAtMs === undefined ? null : Math.floor(pendingMs / 1000),
    lastFlushAt: isoSecondsOrNull(lastFlushAtMs),
  };
}
