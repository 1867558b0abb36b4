import { readFileSync } from 'node:fs';
import type { KeyCache } from '../keys/cache/key-cache.ts';
import type { KeyRevalidator } from '../keys/cache/key-revalidator.ts';
import { CALL_TIME_BOUNDS_MS } from '../limiter/call-times.ts';
import type { CostSettler } from '../limiter/cost-settler.ts';
import type { BucketReading, Reading } from '../observability/metrics.ts';
import type { Readiness } from '../observability/readiness.ts';
import type { Proxy as ProxiedSide } from '../proxy/pipeline.ts';
import type { ConnectionLimit } from '../server/connection-limit.ts';
import type { Usage } from '../usage/create-usage.ts';
import type { ClientLimits } from './client-limits.ts';
import type { Counting } from './stores/counting.ts';

/** The parts whose numbers are shown. */
export interface MeasuredParts {
  readonly counting: Counting;
  readonly costSettler: Pick<CostSettler, 'counts'>;
  readonly keys: KeyCache;
  readonly revalidator: Pick<KeyRevalidator, 'checked' | 'outdated'>;
  readonly usage: Usage;
  readonly proxy: ProxiedSide;
  readonly readiness: Readiness;
  /** Of this gateway. */
  readonly version: string;
  readonly backendConnections: number;
  readonly connectionLimits: ClientLimits;
}

/** The version in `package.json`. */
export function gatewayVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** Every number of the gateway besides those of its requests. `docs/metrics.md` describes them. */
export function gatewayReadings(parts: MeasuredParts): readonly Reading[] {
  const { counting, costSettler, usage, proxy } = parts;
  return [
    ...(counting.shared === undefined ? [] : sharedLimiterReadings(counting.shared)),
    counter(
      'tollgate_reported_costs_total',
      'Costs that the backend was to report in its responses, by result: settled, missing, malformed, or failed because Redis did not respond.',
      () => Object.entries(costSettler.counts).map(([result, value]) => [{ result }, value] as const),
    ),
    ...keyReadings(parts),
    ...usageReadings(() => usage.stats),
    ...clientReadings(parts.connectionLimits),
    ...backendReadings(parts),
    ...rejectionReadings(proxy.counters),
    ...stateReadings(parts),
  ];
}

function keyReadings({ keys, revalidator }: MeasuredParts): readonly Reading[] {
  return [
    counter(
      'tollgate_key_cache_lookups_total',
      'Requests whose key was looked for in memory: hit, or miss, which asks Postgres.',
      () => [
        [{ result: 'hit' }, keys.hits],
        [{ result: 'miss' }, keys.misses],
      ],
    ),
    counter(
      'tollgate_key_cache_checks_total',
      'Keys in memory that were compared with Postgres: current, or outdated and thrown away.',
      () => [
        [{ result: 'current' }, revalidator.checked - revalidator.outdated],
        [{ result: 'outdated' }, revalidator.outdated],
      ],
    ),
    gauge('tollgate_key_cache_entries', 'Consumer keys held in the memory of this process.', () => keys.size),
  ];
}

function usageReadings(stats: () => Usage['stats']): readonly Reading[] {
  return [
    {
      ...gauge(
        'tollgate_usage_flush_lag_seconds',
        'Seconds that the most overdue move of usage from Redis to Postgres is late.',
        () => stats().flusher.lagMs / 1000,
      ),
      ofWorkers: 'max',
    },
    gauge(
      'tollgate_usage_batches_pending',
      'Batches of usage that this process has taken from Redis and not yet written to Postgres.',
      () => stats().flusher.batchesPending,
    ),
    gauge(
      'tollgate_usage_keys_buffered',
      'Consumer keys whose latest usage is still in the memory of this process only.',
      () => stats().keysBuffered,
    ),
    counter(
      'tollgate_usage_records_dropped_total',
      'Requests that were dropped from the usage because their key was deleted meanwhile.',
      () => stats().flusher.recordsDropped,
    ),
    counter(
      'tollgate_usage_rollbacks_total',
      'Times that Redis had lost usage that it had confirmed, or had usage again that was in Postgres already: it was restarted from an older state.',
      () => stats().writer.rollbacks + stats().flusher.batchesOutdated,
    ),
    counter(
      'tollgate_usage_write_failures_total',
      'Writes of usage to Redis that got no response and were tried again. Nothing is counted twice.',
      () => stats().writer.writesUnknown,
    ),
    counter(
      'tollgate_usage_flush_failures_total',
      'Moves of usage from Redis to Postgres that failed and were tried again.',
      () => stats().flusher.failures,
    ),
  ];
}

function clientReadings({ public: clients, admin }: ClientLimits): readonly Reading[] {
  const ofPorts = (read: (limit: ConnectionLimit) => number) => () =>
    Object.entries({ public: clients, ...(admin !== undefined && { admin }) }).map(
      ([port, limit]) => [{ port }, read(limit)] as const,
    );
  return [
    gauge(
      'tollgate_client_connections',
      'Connections of clients that are open now, by port: public, or admin.',
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
  ];
}

function backendReadings({ proxy, backendConnections }: MeasuredParts): readonly Reading[] {
  return [
    gauge('tollgate_requests_in_flight', 'Proxied requests that are being served now.', () => proxy.inFlight),
    gauge(
      'tollgate_upgrades_open',
      'Upgraded connections (WebSockets) that are open now.',
      () => proxy.backendLoad.tunnels,
    ),
    counter(
      'tollgate_backend_connections_opened_total',
      'Connections to the backend that were opened, those of upgrades included.',
      () => proxy.backendConnects,
    ),
    gauge(
      'tollgate_backend_connections_limit',
      'Most requests that may be with the backend at the same time: BACKEND_CONNECTIONS.',
      () => backendConnections,
    ),
    gauge(
      'tollgate_backend_requests_in_use',
      'Requests that are with the backend now.',
      () => proxy.backendLoad.busy,
    ),
    gauge(
      'tollgate_backend_requests_queued',
      'Requests that wait for a backend connection now.',
      () => proxy.backendLoad.waiting,
    ),
  ];
}

function stateReadings({ readiness, version }: MeasuredParts): readonly Reading[] {
  return [
    gauge('tollgate_ready', '1 while the replica is ready for traffic, otherwise 0.', () =>
      Number(readiness.last().ready),
    ),
    {
      ...gauge(
        'tollgate_component_up',
        '1 for each component (postgres, redis, ...) that passed its last check, otherwise 0.',
        () =>
          Object.entries(readiness.last().components)
            // That the replica shuts down is no fault of a component's.
            .filter(([component]) => component !== 'replica')
            .map(([component, state]) => [{ component }, Number(state === 'ok')] as const),
      ),
      ofWorkers: 'min',
    },
    gauge('tollgate_build_info', '1 for each process, with the versions of the gateway and of Node.', () => [
      [{ version, node: process.version }, 1],
    ]),
  ];
}

/** What the proxied side had to end for the sake of the other requests. */
function rejectionReadings({ overloaded, tooSlow }: ProxiedSide['counters']): readonly Reading[] {
  const { request, upgrade } = overloaded;
  return [
    counter(
      'tollgate_backend_rejections_total',
      'Requests rejected with 503 because no backend connection was free: for any key (full), or for this one (key_full).',
      () => [
        [{ kind: 'request', reason: 'full' }, request.full],
        [{ kind: 'request', reason: 'key_full' }, request.key_full],
        [{ kind: 'upgrade', reason: 'full' }, upgrade.full],
        [{ kind: 'upgrade', reason: 'key_full' }, upgrade.key_full],
      ],
    ),
    counter(
      'tollgate_slow_bodies_total',
      'Requests ended because their body, or that of the response, passed more slowly than the minimum rate.',
      () => [
        [{ direction: 'upload' }, tooSlow.upload],
        [{ direction: 'download' }, tooSlow.download],
      ],
    ),
  ];
}

/** How long decisions waited for Redis. */
export function redisCallBuckets({ shared }: Counting): readonly BucketReading[] {
  if (shared === undefined) return [];
  const { redisCalls } = shared;
  return [
    {
      name: 'tollgate_redis_call_duration_seconds',
      help: 'Seconds that rate limit decisions waited for Redis.',
      boundsSeconds: CALL_TIME_BOUNDS_MS.map((bound) => bound / 1000),
      read: () => ({ counts: redisCalls.buckets, sumSeconds: redisCalls.sumMs / 1000 }),
    },
  ];
}

type Shared = NonNullable<Counting['shared']>;

function sharedLimiterReadings({
  failureMode,
  rejectionCache,
  breaker,
  uncounted,
  liveReplicas,
}: Shared): readonly Reading[] {
  return [
    counter(
      'tollgate_limiter_decisions_total',
      'Rate limit decisions by kind (allowed, limited, unlimited, stale, unavailable) and by who made them: Redis (shared), this process from a cached rejection, or this process without Redis (degraded).',
      () => [
        ...Object.entries(failureMode.shared).map(
          ([kind, value]) => [{ kind, mode: 'shared' }, value] as const,
        ),
        ...Object.entries(failureMode.degraded).map(
          ([kind, value]) => [{ kind, mode: 'degraded' }, value] as const,
        ),
        [{ kind: 'limited', mode: 'cached_rejection' }, rejectionCache.hits],
      ],
    ),
    gauge(
      'tollgate_limiter_degraded',
      '1 when this replica made its last decision without Redis, less than a minute ago, otherwise 0.',
      () => Number(failureMode.isDegraded),
    ),
    ...breakerReadings(breaker),
    gauge(
      'tollgate_limiter_uncounted_windows',
      'Windows with requests that were allowed without Redis and are not in Redis yet.',
      () => uncounted.size,
    ),
    {
      ...gauge(
        'tollgate_replicas_live',
        'Replicas that Redis has heard of within the last ten seconds.',
        liveReplicas,
      ),
      ofWorkers: 'max',
    },
  ];
}

function breakerReadings(breaker: Shared['breaker']): readonly Reading[] {
  return [
    gauge(
      'tollgate_limiter_breaker_state',
      '1 for the state that the circuit breaker to Redis is in: closed (Redis decides), open (it is not called), half-open (it is tried).',
      () =>
        (['closed', 'open', 'half-open'] as const).map(
          (state) => [{ state }, Number(breaker.state === state)] as const,
        ),
    ),
    counter(
      'tollgate_limiter_breaker_openings_total',
      'Times that the circuit breaker to Redis opened because Redis failed or was too slow.',
      () => breaker.openings,
    ),
  ];
}

function gauge(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'gauge', read };
}

function counter(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'counter', read };
}
