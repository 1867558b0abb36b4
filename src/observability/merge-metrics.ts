import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue } from 'prom-client';

/** The metrics of one process, as they travel between processes. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of several processes as those of one: each adds up as its `aggregator` says. */
export async function mergeMetrics(
  snapshots: readonly MetricsSnapshot[],
): Promise<{ readonly contentType: string; readonly text: string }> {
  const merged = AggregatorRegistry.aggregate(snapshots as unknown as object[]);
  return { contentType: merged.contentType, text: await merged.metrics() };
}
