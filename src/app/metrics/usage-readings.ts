import { counter, gauge, type Reading } from '../../observability/reading.ts';
import type { Usage } from '../../usage/create-usage.ts';

/** Metrics of the usage pipeline from this process to Redis and Postgres. */
export function usageReadings(stats: () => Usage['stats']): readonly Reading[] {
  return [
    gauge(
      'tollgate_usage_flush_lag_seconds',
      'Seconds that the most overdue move of usage from Redis to Postgres is late.',
      () => stats().flusher.lagMs / 1000,
      'max',
    ),
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
      'tollgate_usage_leases_lost_total',
      'Shards of usage whose lock ended while this process was still moving them.',
      () => stats().flusher.leasesLost,
    ),
    counter(
      'tollgate_usage_lease_overrun_seconds_total',
      'Seconds that this process went on with such shards until it noticed.',
      () => stats().flusher.leaseOverrunMs / 1000,
    ),
    counter(
      'tollgate_usage_flush_failures_total',
      'Moves of usage from Redis to Postgres that failed and were tried again.',
      () => stats().flusher.failures,
    ),
  ];
}
