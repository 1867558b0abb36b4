import { beforeEach, describe, expect, it } from '@jest/globals';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { KeyMetrics } from '../../src/observability/key-metrics.ts';
import {
  type MetricsSnapshot,
  WorkerMetrics,
  type WorkerSnapshot,
} from '../../src/observability/worker-metrics.ts';

/** What a worker has counted. */
class CountingWorker {
  readonly registry = new Registry();
  readonly #registers = { registers: [this.registry], help: 'help' };
  readonly requests = new Counter({ name: 'requests_total', labelNames: ['outcome'], ...this.#registers });
  readonly ofKeys = new KeyMetrics(1, () => 0);
  readonly seconds = new Histogram({ name: 'seconds', buckets: [1, 2], ...this.#registers });
  readonly open = new Gauge({ name: 'open', ...this.#registers });

  /** As it arrives at another process. */
  async snapshot(): Promise<WorkerSnapshot> {
    const snapshot = { metrics: await this.registry.getMetricsAsJSON(), keys: this.ofKeys.take() };
    return JSON.parse(JSON.stringify(snapshot)) as WorkerSnapshot;
  }
}

let metrics: WorkerMetrics;
const snapshots = new Map<number, MetricsSnapshot>();

beforeEach(() => {
  metrics = new WorkerMetrics(new KeyMetrics(1, () => 0));
  snapshots.clear();
});

/** The samples of all workers together, while only some respond. */
async function samples(responding: readonly number[]): Promise<readonly string[]> {
  const scraped = [...snapshots].filter(([worker]) => responding.includes(worker));
  const { text } = await metrics.merged(new Map(scraped));
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

/** Worker `id` starts, counts, and tells it. */
async function runs(id: number, count: (worker: CountingWorker) => void): Promise<void> {
  const worker = new CountingWorker();
  count(worker);
  metrics.started(id);
  await reports(id, worker);
}

/** Worker `id` tells what it has counted. */
async function reports(id: number, worker: CountingWorker): Promise<void> {
  const snapshot = await worker.snapshot();
  snapshots.set(id, snapshot.metrics);
  metrics.update(id, snapshot);
}

function observe({ ofKeys }: CountingWorker, keyId: string, requests: number): void {
  for (let each = 0; each < requests; each += 1) ofKeys.observe(keyId, 'forwarded');
}

describe('the metrics of workers', () => {
  it('are those of all that response, added up', async () => {
    await runs(1, ({ requests, open }) => {
      requests.inc({ outcome: 'forwarded' }, 2);
      open.set(3);
    });
    await runs(2, ({ requests, open }) => {
      requests.inc({ outcome: 'forwarded' }, 40);
      open.set(4);
    });
    expect(await samples([1, 2])).toEqual(
      expect.arrayContaining(['requests_total{outcome="forwarded"} 42', 'open 7']),
    );
  });

  it('keep counters and histograms of a worker that does not respond, not its gauges', async () => {
    await runs(1, ({ requests, seconds, open }) => {
      requests.inc({ outcome: 'forwarded' }, 2);
      seconds.observe(1.5);
      open.set(3);
    });
    await runs(2, ({ requests, seconds, open }) => {
      requests.inc({ outcome: 'forwarded' }, 40);
      seconds.observe(0.5);
      open.set(4);
    });
    const silent = await samples([2]);
    expect(silent).toEqual([
      'requests_total{outcome="forwarded"} 42',
      'seconds_bucket{le="1"} 1',
      'seconds_bucket{le="2"} 2',
      'seconds_bucket{le="+Inf"} 2',
      'seconds_sum 2',
      'seconds_count 2',
      'open 4',
    ]);
    metrics.ended(1);
    expect(await samples([2])).toEqual(expect.arrayContaining([...silent]));
    expect(await samples([2])).toHaveLength(silent.length);
  });

  it('show gauges as of the scrape, whatever a worker reports meanwhile', async () => {
    await runs(1, ({ open }) => open.set(3));
    metrics.update(1, await new CountingWorker().snapshot());
    expect(await samples([1])).toContain('open 3');
  });

  it('keep what each of many workers had counted when it ended, once', async () => {
    for (let id = 1; id <= 50; id++) {
      await runs(id, ({ requests }) => requests.inc({ outcome: id % 2 === 0 ? 'even' : 'odd' }, id));
      metrics.ended(id);
      metrics.ended(id);
    }
    const kept = (await samples([])).filter((line) => line.startsWith('requests_total'));
    expect(kept).toEqual(['requests_total{outcome="odd"} 625', 'requests_total{outcome="even"} 650']);
  });

  it('leave out what arrives from a worker after its end', async () => {
    await runs(1, ({ requests }) => requests.inc(2));
    metrics.ended(1);
    const late = new CountingWorker();
    late.requests.inc(3);
    await reports(1, late);
    expect(await samples([1])).toContain('requests_total 2');
  });

  it('show the busiest key of all workers with all of its requests', async () => {
    const [worker, other] = [new CountingWorker(), new CountingWorker()];
    const shown = async () =>
      (await samples([1, 2])).filter((line) => line.startsWith('tollgate_key_requests_total'));
    metrics.started(1);
    metrics.started(2);
    observe(worker, 'busy', 100);
    observe(other, 'busy', 50);
    await reports(1, worker);
    await reports(2, other);
    const busy = ['tollgate_key_requests_total{key_id="busy",outcome="forwarded"} 150'];
    expect(await shown()).toEqual(busy);
    observe(other, 'busy in one', 140);
    await reports(2, other);
    expect(await shown()).toEqual(busy);
    observe(other, 'busy in one', 20);
    await reports(2, other);
    metrics.ended(2);
    expect(await shown()).toEqual([
      'tollgate_key_requests_total{key_id="busy in one",outcome="forwarded"} 160',
    ]);
    observe(worker, 'busy', 20);
    await reports(1, worker);
    expect(await shown()).toEqual(['tollgate_key_requests_total{key_id="busy",outcome="forwarded"} 170']);
  });

  it('treat the counters of Node and of the process like all others', async () => {
    await runs(1, ({ registry }) => collectDefaultMetrics({ register: registry }));
    const namesOf = (lines: readonly string[]) => new Set(lines.map((line) => line.replace(/[ {].*/, '')));
    expect(namesOf(await samples([1]))).toContain('process_resident_memory_bytes');
    metrics.ended(1);
    const names = namesOf(await samples([]));
    expect(names).toContain('process_cpu_seconds_total');
    expect(names).not.toContain('process_resident_memory_bytes');
    expect(names).not.toContain('nodejs_heap_size_used_bytes');
  });
});
