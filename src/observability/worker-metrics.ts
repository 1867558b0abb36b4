import {
  AggregatorRegistry,
  type MetricObjectWithValues,
  type MetricValue,
  type Registry,
} from 'prom-client';

/** The metrics of one process, as they travel between processes. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/**
 * The metrics of a group's workers as those of one process. What a worker has counted stays in the sums when it stops responding or ends, as
 * of its last snapshot: Prometheus takes a counter that falls for one that was reset, and would count the rest of it a second time.
 */
export class WorkerMetrics {
  /** By worker; of those that live. */
  readonly #last = new Map<number, MetricsSnapshot>();
  /** What the workers that ended have counted, as one snapshot, however many they were. */
  #kept: Promise<MetricsSnapshot> = Promise.resolve([]);

  /** A worker starts. Ids are never used again. */
  started(worker: number): void {
    this.#last.set(worker, []);
  }

  /** Takes the metrics of a worker. Those of one that has ended are dropped: they may arrive after its end. */
  update(worker: number, snapshot: MetricsSnapshot): void {
    if (this.#last.has(worker)) this.#last.set(worker, snapshot);
  }

  ended(worker: number): void {
    const last = this.#last.get(worker);
    if (last === undefined) return;
    this.#last.delete(worker);
    void this.#keep(countsOf(last));
  }

  /** For Prometheus. Only the workers in `responding` have gauges: those of the others would be out of date. */
  async merged(
    responding: ReadonlySet<number>,
  ): Promise<{ readonly contentType: string; readonly text: string }> {
    const living = [...this.#last].map(([worker, snapshot]) =>
      responding.has(worker) ? snapshot : countsOf(snapshot),
    );
    const merged = sumOf([...living, await this.#keep([])]);
    return { contentType: merged.contentType, text: await merged.metrics() };
  }

  /** Adds to what is kept, and drops the keys that no worker shows any more, so that their number stays bounded. */
  #keep(counts: MetricsSnapshot): Promise<MetricsSnapshot> {
    const living = [...this.#last.values()];
    this.#kept = this.#kept.then(async (kept) =>
      withKeysOf(living, await sumOf([kept, counts]).getMetricsAsJSON()),
    );
    return this.#kept;
  }
}

/** Each metric adds up as its `aggregator` says. */
function sumOf(snapshots: readonly MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots as unknown as object[]);
}

/** Counters and histograms, those of Node and of the process included. */
function countsOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  // prom-client's types have numbers where its metrics have words.
  return snapshot.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
}

/** `kept` without the series of keys that none of the snapshots shows. */
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
