import { describe, expect, it } from '@jest/globals';
import { createMetrics, scrapeObjects, scrapeText } from '../../src/observability/metrics.ts';
import type { Reading } from '../../src/observability/reading.ts';
import { RequestMetrics } from '../../src/observability/request-metrics.ts';

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
    ['as objects', scrapeObjects],
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
