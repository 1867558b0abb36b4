import { type BucketReading, counter, gauge, type Reading } from '../../observability/reading.ts';
import { CALL_DURATION_BOUNDS_MS } from '../../storage/redis/decisions/decision-calls.ts';
import type { Counting } from '../stores/counting.ts';

/** How long decisions waited for Redis. */
export function redisCallBuckets({ shared }: Counting): readonly BucketReading[] {
  if (shared === undefined) return [];
  const { redisCalls } = shared;
  return [
    {
      name: 'tollgate_redis_call_duration_seconds',
      help: 'Seconds that rate limit decisions waited for Redis.',
      boundsSeconds: CALL_DURATION_BOUNDS_MS.map((bound) => bound / 1000),
      read: () => ({ counts: redisCalls.buckets, sumSeconds: redisCalls.sumMs / 1000 }),
    },
  ];
}

type Shared = NonNullable<Counting['shared']>;

/** The decisions of a limiter that replicas share, and the state of its guards (circuit breaker, rejection cache). */
export function sharedLimiterReadings({
  failureMode,
  rejectionCache,
  breaker,
  restorer,
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
      () => restorer.size,
    ),
    counter(
      'tollgate_limiter_uncounted_dropped_total',
      'Units of requests that were allowed without Redis and will not be in Redis, because too many windows waited for it.',
      () => restorer.dropped,
    ),
    gauge(
      'tollgate_replicas_live',
      'Replicas that Redis has heard of within the last ten seconds.',
      liveReplicas,
      'max',
    ),
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
