import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  collectDefaultMetrics,
  type Metric,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { type BucketReading, gauge, labelled, type Reading } from './reading.ts';
import type { RequestMetrics } from './request-metrics.ts';

/** The sources of the metrics. */
export interface MetricSources {
  readonly requests: RequestMetrics;
  readonly readings: readonly Reading[];
  readonly buckets: readonly BucketReading[];
}

/** Gauges of prom-client whose names end in `_total`. Each is the sum of another gauge, by type, which is kept. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
];

/**
 * The registry of `/metrics`: requests, readings of the parts of the gateway, the event loop and the process. Every label has a closed set
 * of values, and none of them comes from a client.
 */
export function createMetrics(sources: MetricSources): Registry {
  const registry = new Registry();
  const register = (metric: Scrapable) => registry.registerMetric(metric as unknown as Metric);
  register(sources.requests.total);
  register(sources.requests.limits);
  register(sources.requests.duration);
  register(sources.requests.overhead);
  register(sources.requests.decision);
  register(sources.requests.management);
  for (const reading of [...sources.readings, eventLoopDelay()]) registerReading(registry, reading);
  for (const buckets of sources.buckets) register(scrapeBuckets(buckets));
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  return registry;
}

/**
 * The number of metrics per turn of the event loop; traffic is served between turns. With fewer, a scrape of a busy process would take
 * longer than Prometheus, or the primary process of workers, waits for it.
 */
const AT_ONCE = 16;

async function* namesInTurns(registry: Registry): AsyncGenerator<string> {
  for (const [i, { name }] of registry.getMetricsAsArray().entries()) {
    yield name;
    if (i % AT_ONCE === AT_ONCE - 1) await nextTurn();
  }
}

/** The text of all metrics, like `registry.metrics()`. */
export async function scrapeText(registry: Registry): Promise<string> {
  const parts: string[] = [];
  for await (const name of namesInTurns(registry)) parts.push(await registry.getSingleMetricAsString(name));
  return `${parts.join('\n\n')}\n`;
}

/** The metrics that `isWanted` as objects, in turns as well. The others are not read: some begin again each time. */
export async function scrapeObjects(
  registry: Registry,
  isWanted: (metric: Scrapable) => boolean,
): Promise<MetricObjectWithValues<MetricValue<string>>[]> {
  const metrics: MetricObjectWithValues<MetricValue<string>>[] = [];
  for await (const name of namesInTurns(registry)) {
    const metric = registry.getSingleMetric(name);
    // prom-client's type declarations lack the type.
    if (metric !== undefined && isWanted(metric as unknown as Scrapable)) metrics.push(await metric.get());
  }
  return metrics;
}

/** The part of prom-client's metrics that its registry and this file use. */
interface Scrapable {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  get(): Promise<unknown>;
}

/** Adds a reading to a registry that has no metric of its name. */
export function registerReading(registry: Registry, reading: Reading): void {
  registry.registerMetric(scrapeReading(reading) as unknown as Metric);
}

function scrapeReading({ name, help, type, ofWorkers = 'sum', read }: Reading): Scrapable {
  return {
    name,
    type,
    get: () => {
      const value = read();
      const values =
        typeof value === 'number'
          ? [{ labels: {}, value }]
          : value.map(([labels, each]) => ({ labels, value: each }));
      return Promise.resolve({ name, help, type, values, aggregator: ofWorkers });
    },
  };
}

function scrapeBuckets({ name, help, boundsSeconds, read }: BucketReading): Scrapable {
  return {
    name,
    type: 'histogram',
    get: () => {
      const { counts, sumSeconds } = read();
      let seen = 0;
      const values = [...boundsSeconds, '+Inf'].map((le, index) => {
        seen += counts[index] ?? 0;
        return { metricName: `${name}_bucket`, labels: { le }, value: seen };
      });
      return Promise.resolve({
        name,
        help,
        type: 'histogram',
        values: [
          ...values,
          { metricName: `${name}_sum`, labels: {}, value: sumSeconds },
          { metricName: `${name}_count`, labels: {}, value: seen },
        ],
        aggregator: 'sum',
      });
    },
  };
}

/** How often the event loop is watched. Milliseconds. */
const RESOLUTION_MS = 10;

/** The delay since the last scrape, so that a stall shows in one scrape only. */
function eventLoopDelay(): Reading {
  const intervals = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  intervals.enable();
  return gauge(
    'tollgate_event_loop_delay_seconds',
    'Seconds by which the event loop of a process was late since the last scrape: median, 99th percentile and maximum.',
    () => {
      const values = labelled('statistic', {
        p50: delaySeconds(intervals.percentile(50)),
        p99: delaySeconds(intervals.percentile(99)),
        max: delaySeconds(intervals.max),
      });
      intervals.reset();
      return values;
    },
    'max',
  );
}

/** Node measures from one look to the next, in nanoseconds: an event loop that is not late has intervals of `RESOLUTION_MS`. */
function delaySeconds(interval: number): number {
  return Math.max(0, interval / 1e6 - RESOLUTION_MS) / 1000;
}
