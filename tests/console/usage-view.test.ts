import { describe, expect, it } from '@jest/globals';
import type { UsageSeries } from '../../src/console/api/read-usage-series.ts';
import { bucketIndexOf, bucketsOf } from '../../src/console/pages/usage/buckets.ts';
import { momentFields, readView, spanBefore, spanOf } from '../../src/console/pages/usage/usage-view.ts';

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

  it('is of whole months up to now where the range is one of months', () => {
    const year = view('range=12mo');
    const span = spanOf(year, NOW);
    expect(iso(span)).toEqual(['2025-04-01T00:00:00Z', '2026-03-31T10:30:00Z']);
    expect(iso(spanBefore(year, span))).toEqual(['2024-04-01T00:00:00Z', '2025-03-31T10:30:00Z']);
    const { from } = spanOf(readView(new URLSearchParams('range=12mo')), new Date(2026, 0, 31, 12).getTime());
    expect(new Date(from)).toEqual(new Date(2025, 1, 1));
  });

  it('has the last of the chosen days in it', () => {
    const chosen = view('from=2026-02-27&to=2026-02-28');
    const span = spanOf(chosen, NOW);
    expect(iso(span)).toEqual(['2026-02-27T00:00:00Z', '2026-03-01T00:00:00Z']);
    expect(iso(spanBefore(chosen, span))).toEqual(['2026-02-25T00:00:00Z', '2026-02-27T00:00:00Z']);
  });
});

describe('a link to a moment', () => {
  const addressOf = (fields: Readonly<Record<string, string>>) => new URLSearchParams(fields).toString();

  it('keeps its buckets at any later time', () => {
    const sent = view('tag=eu');
    const fields = momentFields(sent, spanOf(sent, NOW), Date.parse('2026-03-31T03:00:00Z'));
    expect(fields).toEqual({
      ...{ range: '', interval: 'hour', from: '2026-03-30', to: '2026-03-31', at: '2026-03-31T03:00:00Z' },
    });
    expect(view(addressOf(fields))).toMatchObject({ dates: { first: '2026-03-30', last: '2026-03-31' } });
  });

  it.each([
    ['2026-01-03T03:00:00Z', '2026-01-01T00:00:00Z', '2026-01-04T00:00:00Z'],
    ['2025-12-31T22:00:00Z', '2025-12-31T00:00:00Z', '2026-01-03T00:00:00Z'],
    ['2026-01-02T22:00:00Z', '2026-01-01T00:00:00Z', '2026-01-03T00:00:00Z'],
  ])('has the day of %s in it where the reader has another time zone', (at, from, to) => {
    const read = view(addressOf({ from: '2026-01-01', to: '2026-01-02', interval: 'hour', at }));
    expect(iso(spanOf(read, NOW))).toEqual([from, to]);
  });

  it.each([
    ['the month that has begun before them', 'month', '2026-01-01T00:00:00Z'],
    ['the hour that has begun before them, where days begin at half past', 'hour', '2026-01-14T23:30:00Z'],
  ])('keeps its dates with %s', (_what, interval, at) => {
    const dates = { first: '2026-01-15', last: '2026-02-15' };
    const read = view(addressOf({ from: dates.first, to: dates.last, interval, at }));
    expect(read.dates).toEqual(dates);
  });
});

describe('the buckets of a series', () => {
  const counts = { failed: 3, rateLimited: 2, clientErrors: 2, serverErrors: 1, shadowLimited: 0 };
  const row = (start: string) => ({
    start,
    requests: 10,
    successful: 7,
    averageResponseTimeMs: 5,
    forwarded: 8,
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

  it('are none for an instant before the first or after the last of them', () => {
    const days = series('2026-02-27T00:00:00Z', '2026-03-01T00:00:00Z', []);
    const { starts } = bucketsOf(days, 'day');
    const indexOf = (at: string) => bucketIndexOf(Date.parse(at), starts, days);
    expect(indexOf('2026-02-26T23:59:59Z')).toBe(-1);
    expect(indexOf('2026-02-27T00:00:00Z')).toBe(0);
    expect(indexOf('2026-02-28T23:59:59Z')).toBe(1);
    expect(indexOf('2026-03-01T00:00:00Z')).toBe(-1);
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
