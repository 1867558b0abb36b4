import {
  AggregatorRegistry,
  type MetricObjectWithValues,
  type MetricValue,
  type Registry,
} from 'prom-client';

/** The metrics of one process, in the form that is sent between processes. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

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

  /** Called when a worker starts. Ids are never reused. */
  started(worker: number): void {
    this.#last.set(worker, []);
  }

  /** Sets the metrics of a worker. Ignored if the worker has ended: a snapshot may arrive late. */
  update(worker: number, snapshot: MetricsSnapshot): void {
    if (this.#last.has(worker)) this.#last.set(worker, snapshot);
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
    return { contentType: merged.contentType, text: await merged.metrics() };
  }

  /** Adds counters to the kept ones. Drops series of keys that no live worker shows, so that their number stays bounded. */
  #keep(counts: MetricsSnapshot): Promise<MetricsSnapshot> {
    const living = [...this.#last.values()];
    this.#kept = this.#kept.then(async (kept) =>
      withKeysOf(living, await sumOf([kept, counts]).getMetricsAsJSON()),
    );
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

/** `kept` without the series of keys that no snapshot has. */
function withKeysOf(snapshots: readonly MetricsSnapshot[], kept: MetricsSnapshot): MetricsSnapshot {
  const shown = new Set(
    snapshots.flatMap((metrics) =>
      metrics.flatMap(({ values }) => values.map(({ labels }) => labels.key_id)),
    ),
  );
  return kept.map((metric) => ({
    ...metric,
    values: metric.values.filter(({ labels }) => labels.key_id === undefined || shown.has(labels.key_id)),
  }));
}
