import { readFileSync } from 'node:fs';
import type { KeyCache } from '../keys/cache/key-cache.ts';
import type { KeyRevalidator } from '../keys/cache/key-revalidator.ts';
import { CALL_TIME_BOUNDS_MS } from '../limiter/call-times.ts';
import type { CostSettler } from '../limiter/cost-settler.ts';
import type { BucketReading, Reading } from '../observability/metrics.ts';
import type { Readiness } from '../observability/readiness.ts';
import type { Proxy as ProxiedSide } from '../proxy/pipeline.ts';
import type { Usage } from '../usage/create-usage.ts';
import type { Counting } from './open-stores.ts';

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
}

/** The version in `package.json`. */
export function gatewayVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

/** Every number of the gateway besides those of its requests. `docs/metrics.md` describes them. */
export function gatewayReadings({
  counting,
  keys,
  costSettler,
  revalidator,
  usage,
  proxy,
  readiness,
  version,
  backendConnections,
}: MeasuredParts): readonly Reading[] {
  return [
    ...(counting.shared === undefined ? [] : sharedLimiterReadings(counting.shared)),
    counter(
      'tollgate_reported_costs_total',
      'Costs that backends were to report, by what became of them.',
      () => Object.entries(costSettler.counts).map(([result, value]) => [{ result }, value] as const),
    ),
    counter('tollgate_key_cache_lookups_total', 'Look-ups of presented secrets in memory.', () => [
      [{ result: 'hit' }, keys.hits],
      [{ result: 'miss' }, keys.misses],
    ]),
    counter('tollgate_key_cache_checks_total', 'Cached keys compared with the record store.', () => [
      [{ result: 'current' }, revalidator.checked - revalidator.outdated],
      [{ result: 'outdated' }, revalidator.outdated],
    ]),
    gauge('tollgate_key_cache_entries', 'Keys held in memory.', () => keys.size),
    {
      ...gauge(
        'tollgate_usage_flush_lag_seconds',
        'How late the most overdue move of usage to Postgres was, since its last try.',
        () => usage.stats.flusher.lagMs / 1000,
      ),
      ofWorkers: 'max',
    },
    gauge(
      'tollgate_usage_batches_pending',
      'Batches of usage taken and not yet in Postgres.',
      () => usage.stats.flusher.batchesPending,
    ),
    gauge(
      'tollgate_usage_keys_buffered',
      'Keys with usage that is still in this process.',
      () => usage.stats.keysBuffered,
    ),
    counter(
      'tollgate_usage_records_dropped_total',
      'Recorded requests of keys that were deleted meanwhile.',
      () => usage.stats.flusher.recordsDropped,
    ),
    counter(
      'tollgate_usage_rollbacks_total',
      'Times that Redis was found to have lost usage of a shard that it had acknowledged, or to have usage that was moved already.',
      () => usage.stats.writer.rollbacks + usage.stats.flusher.batchesOutdated,
    ),
    counter(
      'tollgate_usage_write_failures_total',
      'Writes of usage whose outcome was unknown, and that were made again.',
      () => usage.stats.writer.writesUnknown,
    ),
    counter(
      'tollgate_usage_flush_failures_total',
      'Moves of usage to Postgres that failed and were tried again.',
      () => usage.stats.flusher.failures,
    ),
    gauge(
      'tollgate_requests_in_flight',
      'Proxied requests whose response is not over.',
      () => proxy.inFlight,
    ),
    gauge('tollgate_upgrades_open', 'Upgraded connections.', () => proxy.backendLoad.tunnels),
    counter(
      'tollgate_backend_connections_opened_total',
      'Connections to the backend that were made.',
      () => proxy.backendConnects,
    ),
    gauge(
      'tollgate_backend_connections_limit',
      'Most requests that may be with the backend at a time (BACKEND_CONNECTIONS).',
      () => backendConnections,
    ),
    gauge(
      'tollgate_backend_requests_in_use',
      'Requests that are with the backend.',
      () => proxy.backendLoad.busy,
    ),
    gauge(
      'tollgate_backend_requests_queued',
      'Requests that wait for a backend connection.',
      () => proxy.backendLoad.waiting,
    ),
    ...rejectionReadings(proxy.counters),
    gauge('tollgate_ready', 'Whether the replica wants traffic.', () => Number(readiness.last().ready)),
    {
      ...gauge('tollgate_component_up', 'Whether a component passed its last check.', () =>
        Object.entries(readiness.last().components)
          // That the replica shuts down is no fault of a component's.
          .filter(([component]) => component !== 'replica')
          .map(([component, state]) => [{ component }, Number(state === 'ok')] as const),
      ),
      ofWorkers: 'min',
    },
    gauge('tollgate_build_info', 'Processes, and what runs in them.', () => [
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
      'Requests rejected because no place with the backend was free.',
      () => [
        [{ kind: 'request', reason: 'full' }, request.full],
        [{ kind: 'request', reason: 'key_full' }, request.key_full],
        [{ kind: 'upgrade', reason: 'full' }, upgrade.full],
        [{ kind: 'upgrade', reason: 'key_full' }, upgrade.key_full],
      ],
    ),
    counter(
      'tollgate_slow_bodies_total',
      'Requests ended because a body passed below the least rate.',
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
      help: 'How long decisions waited for Redis.',
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
    counter('tollgate_limiter_decisions_total', 'Decisions about requests, by who made them.', () => [
      ...Object.entries(failureMode.shared).map(
        ([kind, value]) => [{ kind, mode: 'shared' }, value] as const,
      ),
      ...Object.entries(failureMode.degraded).map(
        ([kind, value]) => [{ kind, mode: 'degraded' }, value] as const,
      ),
      [{ kind: 'limited', mode: 'cached_rejection' }, rejectionCache.hits],
    ]),
    gauge(
      'tollgate_limiter_degraded',
      'Whether this replica made its last decision without Redis, less than a minute ago.',
      () => Number(failureMode.isDegraded),
    ),
    gauge('tollgate_limiter_breaker_state', 'State of the circuit to Redis.', () =>
      (['closed', 'open', 'half-open'] as const).map(
        (state) => [{ state }, Number(breaker.state === state)] as const,
      ),
    ),
    counter(
      'tollgate_limiter_breaker_openings_total',
      'How often the circuit to Redis opened.',
      () => breaker.openings,
    ),
    gauge(
      'tollgate_limiter_uncounted_windows',
      'Windows with requests allowed during an outage that Redis does not know of yet.',
      () => uncounted.size,
    ),
    {
      ...gauge(
        'tollgate_replicas_live',
        'Replicas that gave a sign of life within ten seconds.',
        liveReplicas,
      ),
      ofWorkers: 'max',
    },
  ];
}

function gauge(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'gauge', read };
}

function counter(name: string, help: string, read: Reading['read']): Reading {
  return { name, help, type: 'counter', read };
}
