import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SeededRandom } from '../../chaos/seeded-random.ts';
import { markdownOfRow, type Occasion, svgOf, withRow } from './report.ts';
import { verdictOnRatio } from './row.ts';
import { ratioOfTurns, spreadOfPair, type Turn } from './take-turns.ts';
import { zipfKeys } from './zipf.ts';

const DOCS = resolve(import.meta.dirname, '../../../docs');
const ROWS = ['more-replicas', 'more-redis', 'more-keys', 'cold-start', 'hot-key', 'flood-of-changes'].concat(
  'management',
);
const OCCASION: Occasion = {
  ...{ measuredAt: '2026-01-02T03:04:05.678Z', tookSeconds: 12.3 },
  machine: { cpu: 'a CPU', cores: 2, memoryGb: 8, kernel: '6', node: 'v26', nginx: '1', loadAverage: 0.5 },
  size: { keys: 1000, rounds: 3, seconds: 2, warmUpSeconds: 1, patienceSeconds: 1 },
};

describe('the bench of scale', () => {
  it('draws keys by a Zipf law, and none that is not there', () => {
    const random = new SeededRandom(7);
    const counts = new Map<number, number>();
    for (const key of zipfKeys(1000, 50_000, () => random.fraction()))
      counts.set(key, (counts.get(key) ?? 0) + 1);
    const [first = 0, second = 0, third = 0] = [...counts.values()].toSorted((a, b) => b - a);
    const shareOf = (rank: number) => Math.log(1 + 1 / rank) / Math.log(1001);
    for (const [rank, count] of [first, second, third].entries())
      expect(Math.abs(count / 50_000 - shareOf(rank + 1))).toBeLessThan(0.01);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2_000_000 }),
        fc.double({ min: 0, max: 1 - 2 ** -53, noNaN: true }),
        (keys, at) => {
          const [key = -1] = zipfKeys(keys, 1, () => at);
          expect(key >= 0 && key < keys && Number.isInteger(key)).toBe(true);
        },
      ),
    );
  });

  it('compares round with round, and leaves out rounds without a response', () => {
    const turnsOf = (...cpuUs: number[]): readonly Turn[] =>
      cpuUs.map((us) => ({ cpuUs: us, redisCpuUs: 1, requests: 1, p99Ms: 1, failed: 0 }));
    expect(ratioOfTurns(turnsOf(20, 200, 7), turnsOf(10, 100, Number.POSITIVE_INFINITY)).median).toBe(2);
    expect(spreadOfPair(turnsOf(10, 10, 12), turnsOf(10, 10, 10))).toBeCloseTo(0.1);
  });

  it('calls a budget missed only where the A/A pair is closer than what is missing', () => {
    const ratio = (median: number) => ({ median, low: median, high: median });
    expect(verdictOnRatio('CPU', ratio(1.1), 1.15, 0.1).holds).toBe(true);
    expect(verdictOnRatio('CPU', ratio(1.1), 1.15, 0.5).holds).toBeUndefined();
    expect(verdictOnRatio('CPU', ratio(1.2), 1.15, 0.1).holds).toBeUndefined();
    expect(verdictOnRatio('CPU', ratio(1.4), 1.15, 0.1).holds).toBe(false);
  });

  it('writes a row where the page has a place for it, and nowhere else', async () => {
    const verdicts = [{ budget: 'CPU ≤ 1.15 ×', measured: '1.40', holds: false }];
    const text = markdownOfRow({ heads: ['a'], rows: [['1']], spread: 0.031, verdicts }, OCCASION);
    expect(text).toContain('| CPU ≤ 1.15 × | 1.40 | **missed** |');
    expect(text).toContain('on 2 cores of a CPU');
    expect(text).toContain('±3.1 %');
    const page = await readFile(resolve(DOCS, 'scale.md'), 'utf8');
    for (const name of ROWS) {
      const written = withRow(page, name, text);
      expect(written.split(text)).toHaveLength(2);
      expect(withRow(written, name, text)).toBe(written);
    }
    expect(() => withRow(page, 'made-up', text)).toThrow('made-up');
  });

  it('draws plots whose text is readable in a light and in a dark theme', () => {
    const plot = { name: 'p', title: 'a title', xName: 'x', xs: [1, 2], lines: { 'a line': [3, 4] } };
    const svg = svgOf(plot);
    expect(svg).toContain('a line');
    const colours = [...svg.matchAll(/<text[^>]* fill="([^"]+)"/g)].map(([, colour]) => colour);
    expect(new Set(colours)).toEqual(new Set(['#808890']));
  });
});
