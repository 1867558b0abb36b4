import { describe, expect, it } from '@jest/globals';
import type { Registry } from 'prom-client';
import { createMetrics, scrapeObjects, scrapeText } from '../../src/observability/metrics.ts';
import type { Reading } from '../../src/observability/reading.ts';
import { RequestMetrics } from '../../src/observability/request-metrics.ts';
import { until } from '../support/until.ts';

const READINGS = 100;

/** As many metrics as a gateway has, and those of the process. */
function registryOfMany() {
  const readings = Array.from(
    { length: READINGS },
    (_, i): Reading => ({ name: `reading_${i}`, help: 'One of many.', type: 'gauge', read: () => i }),
  );
  return createMetrics({ requests: new RequestMetrics([]), readings, buckets: [] });
}

describe('a scrape', () => {
  it.each([
    ['as text', scrapeText],
    ['as objects', (registry: Registry) => scrapeObjects(registry, () => true)],
  ] as const)('lets traffic go on, but does not wait for it a hundred times: %s', async (_how, scrape) => {
    const registry = registryOfMany();
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await scrape(registry);
    isOver = true;
    expect(turns).toBeGreaterThan(3);
    expect(turns).toBeLessThan(20);
  });
});

describe('the count of requests', () => {
  it.each([
    [599, '5xx'],
    [600, '5xx'],
    [999, '5xx'],
    [0, 'none'],
  ])('has a status of %s in the class %s', async (status, status_class) => {
    const metrics = new RequestMetrics([]);
    metrics.observe('forwarded', { method: 'GET', status, durationMs: 1, gatewayMs: 1 });
    expect((await metrics.total.get()).values).toEqual([
      { labels: { route: 'backend', outcome: 'forwarded', method: 'GET', status_class }, value: 1 },
    ]);
  });
});

describe('the delay of the event loop', () => {
  it('is measured beyond the interval at which Node looks', async () => {
    const registry = createMetrics({ requests: new RequestMetrics([]), readings: [], buckets: [] });
    // Node looks every 10 ms, give or take one. Before its first looks the delay is 0.
    await until(async () => {
      const text = await registry.getSingleMetricAsString('tollgate_event_loop_delay_seconds');
      const max = Number(/statistic="max"} (\S+)/.exec(text)?.[1]);
      return max > 0 && max < 0.005;
    });
  });
});
