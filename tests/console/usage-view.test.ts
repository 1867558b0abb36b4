import { describe, expect, it } from '@jest/globals';
import type { UsageSeries } from '../../src/console/api/read-usage-series.ts';
import { bucketsOf } from '../../src/console/pages/usage/buckets.ts';
import { readView, spanBefore, spanOf } from '../../src/console/pages/usage/usage-view.ts';

const NOW = Date.parse('2026-03-31T10:30:00Z');
const view = (search: string) => readView(new URLSearchParams(`zone=utc&${search}`));
const iso = ({ from, to }: { from: number; to: number }) =>
  [from, to].map((at) => `${new Date(at).toISOString().slice(0, 19)}Z`);

describe('the view of usage', () => {
  it('is read from an address, whatever else stands there', () => {
    expect(view('range=7d&interval=hour&groupBy=key&compare=1&tag=eu&x=1')).toMatchObject({
      range: '7d',
      interval: 'hour',
      groupBy: 'key',
      isCompared: true,
      filters: { tag: 'eu' },
    });
    expect(view('range=__proto__&interval=year&groupBy=constructor&from=yesterday&to=')).toEqual({
      range: '24h',
      dates: undefined,
      interval: 'hour',
      groupBy: undefined,
      isCompared: false,
      isUtc: true,
      filters: {},
    });
  });

  it('is of whole days up to now, and compared with the same times before', () => {
    const week = view('range=7d');
    const span = spanOf(week, NOW);
    expect(iso(span)).toEqual(['2026-03-25T00:00:00Z', '2026-03-31T10:30:00Z']);
    expect(iso(spanBefore(week, span))).toEqual(['2026-03-18T00:00:00Z', '2026-03-24T10:30:00Z']);
  });

  it('has the last of the chosen days in it', () => {
    const chosen = view('from=2026-02-27&to=2026-02-28');
    const span = spanOf(chosen, NOW);
    expect(iso(span)).toEqual(['2026-02-27T00:00:00Z', '2026-03-01T00:00:00Z']);
    expect(iso(spanBefore(chosen, span))).toEqual(['2026-02-25T00:00:00Z', '2026-02-27T00:00:00Z']);
  });
});

describe('the buckets of a series', () => {
  const counts = { failed: 3, rateLimited: 2, clientErrors: 2, serverErrors: 1, shadowLimited: 0 };
  const row = (start: string) => ({
    start,
    requests: 10,
    successful: 7,
    averageResponseTimeMs: 5,
    ...counts,
  });
  const series = (from: string, to: string, starts: readonly string[]): UsageSeries => ({
    from,
    to,
    interval: 'day',
    timeZone: 'UTC',
    completeUntil: to,
    rows: starts.map(row),
  });

  it('have those without requests in between, and three outcomes that add up', () => {
    const { starts, outcomes } = bucketsOf(
      series('2026-02-27T00:00:00Z', '2026-03-02T00:00:00Z', ['2026-02-28T00:00:00Z']),
      'day',
    );
    expect(starts.map((at) => new Date(at).toISOString().slice(0, 10))).toEqual([
      '2026-02-27',
      '2026-02-28',
      '2026-03-01',
    ]);
    expect(
      outcomes.map(({ requests, allowed, limited, failed }) => [requests, allowed, limited, failed]),
    ).toEqual([
      [0, 0, 0, 0],
      [10, 7, 2, 1],
      [0, 0, 0, 0],
    ]);
  });

  it('begin with months where months are counted', () => {
    const { starts } = bucketsOf(series('2026-01-15T00:00:00Z', '2026-03-02T00:00:00Z', []), 'month');
    expect(starts.map((at) => new Date(at).toISOString().slice(0, 10))).toEqual([
      '2026-01-01',
      '2026-02-01',
      '2026-03-01',
    ]);
  });
});
