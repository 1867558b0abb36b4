import {
  AggregatorRegistry,
  type MetricObjectWithValues,
  type MetricValue,
  type Registry,
} from 'prom-client';
import type { KeyCounts, KeyMetrics } from './key-metrics.ts';
import { registerReading } from './metrics.ts';

/** The metrics of one process, in the form that is sent between processes. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** All that a worker reports. */
export interface WorkerSnapshot {
  readonly metrics: MetricsSnapshot;
  /** The requests of keys since its report before this one. */
  readonly keys: KeyCounts;
}

/** What a snapshot is for: a scrape shows all of it; of one that is kept, only counters and histograms are shown. */
export type SnapshotUse = 'scrape' | 'keep';

/**
 * Merges the metrics of a group's workers. The counters of a worker that stops responding or ends stay in the sums, as of its last
 * snapshot: Prometheus takes a counter that decreases for one that was reset, and would count the remaining value a second time.
 */
export class WorkerMetrics {
  /** The last snapshot of each live worker. */
  readonly #last = new Map<number, MetricsSnapshot>();
  /** The merged counters of all workers that have ended. */
  #kept: Promise<MetricsSnapshot> = Promise.resolve([]);
  readonly #keys: KeyMetrics | undefined;

  /** `keys` adds up what the workers count of single keys; undefined if they don't. */
  constructor(keys?: KeyMetrics) {
    this.#keys = keys;
  }

  /** Called when a worker starts. Ids are never reused. */
  started(worker: number): void {
    this.#last.set(worker, []);
  }

  /** Sets the metrics of a worker, and adds its requests of keys. Of a worker that has ended the metrics are ignored: they come too late. */
  update(worker: number, { metrics, keys }: WorkerSnapshot): void {
    this.#keys?.add(keys);
    if (this.#last.has(worker)) this.#last.set(worker, metrics);
  }

  ended(worker: number): void {
    const last = this.#last.get(worker);
    if (last === undefined) return;
    this.#last.delete(worker);
    void this.#keep(countsOf(last));
  }

  /** The text for Prometheus. `scraped` has the snapshots for this scrape: gauges of workers without one would be out of date. */
  async merged(
    scraped: ReadonlyMap<number, MetricsSnapshot>,
  ): Promise<{ readonly contentType: string; readonly text: string }> {
    const living = [...this.#last].map(([worker, snapshot]) => scraped.get(worker) ?? countsOf(snapshot));
    const merged = sumOf([...living, await this.#keep([])]);
    if (this.#keys !== undefined) registerReading(merged, this.#keys.reading());
    return { contentType: merged.contentType, text: await merged.metrics() };
  }

  /** Adds counters to the kept ones. */
  #keep(counts: MetricsSnapshot): Promise<MetricsSnapshot> {
    this.#kept = this.#kept.then((kept) => sumOf([kept, counts]).getMetricsAsJSON());
    return this.#kept;
  }
}

/** Merges each metric as its `aggregator` says. */
function sumOf(snapshots: readonly MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots as unknown as object[]);
}

/** The counters and histograms, including those of Node and of the process. */
function countsOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  // prom-client's type declarations have numbers here, but the values are strings.
  return snapshot.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
}
