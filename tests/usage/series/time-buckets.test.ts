import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketStarts,
  bucketsFrom,
  hoursOfDays,
  quartersAndHours,
  type TimeSpan,
  wholeDays,
  wholeHours,
} from '../../../src/usage/series/time-buckets.ts';
import { isTimeZone, TimeZone } from '../../../src/usage/series/time-zone.ts';

const HOUR_MS = 3_600_000;
const span = (from: string, to: string) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) });

function starts(from: string, to: string, interval: 'hour' | 'day' | 'month' | 'total', zone = 'UTC') {
  const found = bucketStarts(span(from, to), interval, new TimeZone(zone));
  return found.map((start) => new Date(start).toISOString().replace(':00.000Z', 'Z'));
}

describe('the buckets of a span', () => {
  it('are the hours, days or months that it touches, or one for all of it', () => {
    expect(starts('2026-02-28T22:00Z', '2026-03-01T01:00Z', 'hour')).toEqual([
      '2026-02-28T22:00Z',
      '2026-02-28T23:00Z',
      '2026-03-01T00:00Z',
    ]);
    expect(starts('2026-02-27T22:00Z', '2026-03-01T00:00Z', 'day')).toEqual([
      '2026-02-27T00:00Z',
      '2026-02-28T00:00Z',
    ]);
    expect(starts('2025-12-31T22:00Z', '2026-02-01T01:00Z', 'month')).toEqual([
      '2025-12-01T00:00Z',
      '2026-01-01T00:00Z',
      '2026-02-01T00:00Z',
    ]);
    expect(starts('2026-02-27T22:00Z', '2027-03-01T00:00Z', 'total')).toEqual(['2026-02-27T22:00Z']);
  });

  it('have 23 and 25 hours on the days on which Berlin moves its clocks', () => {
    expect(starts('2026-03-28T23:00Z', '2026-03-30T22:00Z', 'day', 'Europe/Berlin')).toEqual([
      '2026-03-28T23:00Z',
      '2026-03-29T22:00Z',
    ]);
    expect(starts('2026-10-24T22:00Z', '2026-10-26T23:00Z', 'day', 'Europe/Berlin')).toEqual([
      '2026-10-24T22:00Z',
      '2026-10-25T23:00Z',
    ]);
  });

  it.each([
    ['Asia/Beirut', '2026-03-28T22:00Z', 'clocks skip midnight'],
    ['America/Havana', '2026-03-08T05:00Z', 'clocks skip midnight'],
    ['America/Havana', '2026-11-01T04:00Z', 'midnight comes twice'],
    ['Australia/Lord_Howe', '2026-10-03T13:30Z', 'clocks move by half an hour'],
    ['Asia/Kathmandu', '2026-06-30T18:15Z', 'the offset is +05:45'],
  ])('in %s hold a day that begins at %s, where %s', (zone, start) => {
    const toMs = Date.parse(start) + 12 * HOUR_MS;
    const days = bucketStarts({ fromMs: Date.parse(start), toMs }, 'day', new TimeZone(zone));
    expect(days.map((day) => new Date(day).toISOString())).toEqual([new Date(start).toISOString()]);
  });

  it('leave out a day that a zone left out', () => {
    expect(starts('2011-12-29T10:00Z', '2012-01-01T10:00Z', 'day', 'Pacific/Apia')).toEqual([
      '2011-12-29T10:00Z',
      '2011-12-30T10:00Z',
      '2011-12-31T10:00Z',
    ]);
  });

  it.each(['hour', 'day', 'month'] as const)('are counted from 0, by %s', (interval) => {
    const zone = new TimeZone('Europe/Berlin');
    const fromMs = Date.parse('2026-02-27T22:30Z');
    const startOf = bucketsFrom(fromMs, interval, zone);
    const toMs = startOf(50);
    expect(bucketStarts({ fromMs, toMs }, interval, zone)).toHaveLength(50);
    expect(bucketStarts({ fromMs, toMs: toMs + 1 }, interval, zone).at(50)).toBe(toMs);
  });

  it('begin at the dates of the calendar, in order, and cover the span, in any zone', () => {
    const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
    const instant = fc.integer({ min: Date.UTC(2015, 0), max: Date.UTC(2035, 0) });
    const days = fc.integer({ min: 1, max: 400 });
    const interval = fc.constantFrom('day' as const, 'month' as const);
    fc.assert(
      fc.property(zones, instant, days, interval, (name, fromMs, length, unit) => {
        const toMs = fromMs + length * 24 * HOUR_MS;
        const found = bucketStarts({ fromMs, toMs }, unit, new TimeZone(name));
        const dates = found.map((start) => localDate(start, name));
        const before = found.map((start) => localDate(start - 1, name));
        expect(found[0]).toBeLessThanOrEqual(fromMs);
        expect(dates[0]?.slice(0, unit === 'day' ? 10 : 7)).toBe(
          localDate(fromMs, name).slice(0, unit === 'day' ? 10 : 7),
        );
        expect(found).toEqual(found.toSorted((a, b) => a - b));
        expect(found.at(-1)).toBeLessThan(toMs);
        for (const [index, date] of dates.entries()) {
          expect(date > (before[index] ?? '')).toBe(true);
          if (unit === 'month') expect(date.slice(8)).toBe('01');
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('a span', () => {
  it('is rounded outwards to whole hours, or to whole days', () => {
    const asked = span('2026-02-03T04:05:06Z', '2026-02-03T05:00:01Z');
    expect(wholeHours(asked, new TimeZone('UTC'))).toEqual(span('2026-02-03T04:00Z', '2026-02-03T06:00Z'));
    expect(wholeDays(asked)).toEqual(span('2026-02-03T00:00Z', '2026-02-04T00:00Z'));
  });

  it('of a local day does not take in the hour that began the day before', () => {
    const day = span('2026-02-02T18:30Z', '2026-02-03T18:30Z');
    expect(wholeHours(day, new TimeZone('Asia/Kolkata'))).toEqual(
      span('2026-02-02T19:00Z', '2026-02-03T19:00Z'),
    );
    expect(wholeHours(day, new TimeZone('UTC'))).toEqual(span('2026-02-02T18:00Z', '2026-02-03T19:00Z'));
  });
});

describe('a time zone', () => {
  it('is named as in the IANA database', () => {
    for (const name of ['UTC', 'Europe/Berlin', 'america/new_york', 'Etc/GMT+5', 'Asia/Kolkata'])
      expect(isTimeZone(name)).toBe(true);
    for (const name of ['', '+02:00', 'Europe/Atlantis', 'local', "x'; DROP", 'Europe/Berlin '.repeat(20)])
      expect(isTimeZone(name)).toBe(false);
  });
});

/** YYYY-MM-DD. */
function localDate(instantMs: number, timeZone: string): string {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return format.format(instantMs);
}

describe('a span in quarters of days and hours', () => {
  const now = Date.parse('2026-11-22T16:30Z');
  const text = ({ fromMs, toMs }: TimeSpan) =>
    [fromMs, toMs].map((ms) => new Date(ms).toISOString().slice(5, 13)).join(' to ');
  const parts = (from: string, to: string) => {
    const { quarters, added, subtracted } = quartersAndHours(span(from, to), now);
    return [quarters && text(quarters), added.map(text), subtracted.map(text)];
  };

  it('is quarters alone where it begins and ends with one', () => {
    expect(parts('2026-11-20T00:00Z', '2026-11-22T00:00Z')).toEqual(['11-20T00 to 11-22T00', [], []]);
    expect(parts('2026-11-20T12:00Z', '2026-11-21T12:00Z')).toEqual(['11-20T12 to 11-21T12', [], []]);
  });

  it('adds or takes away hours, whichever are fewer', () => {
    expect(parts('2026-11-18T22:00Z', '2026-11-20T01:00Z')).toEqual([
      '11-19T00 to 11-20T00',
      ['11-18T22 to 11-19T00', '11-20T00 to 11-20T01'],
      [],
    ]);
    expect(parts('2026-11-18T02:00Z', '2026-11-20T17:00Z')).toEqual([
      '11-18T00 to 11-20T18',
      [],
      ['11-18T00 to 11-18T02', '11-20T17 to 11-20T18'],
    ]);
  });

  it('takes the present quarter whole, whose later hours have no rows yet', () => {
    expect(parts('2026-11-21T17:00Z', '2026-11-22T14:00Z')).toEqual([
      '11-21T18 to 11-22T12',
      ['11-21T17 to 11-21T18', '11-22T12 to 11-22T14'],
      [],
    ]);
    expect(parts('2026-11-21T18:00Z', '2026-11-22T15:00Z')).toEqual([
      '11-21T18 to 11-22T18',
      [],
      ['11-22T15 to 11-22T18'],
    ]);
  });

  it('is hours alone where a quarter would cost more', () => {
    expect(parts('2026-11-20T09:00Z', '2026-11-20T15:00Z')).toEqual([
      undefined,
      ['11-20T09 to 11-20T15'],
      [],
    ]);
    expect(parts('2026-11-20T22:00Z', '2026-11-21T02:00Z')).toEqual([
      undefined,
      ['11-20T22 to 11-21T02'],
      [],
    ]);
  });

  it('has each of its hours once, for any span', () => {
    const firstHour = Math.floor(now / HOUR_MS) - 100;
    const hour = fc.integer({ min: firstHour, max: firstHour + 150 });
    fc.assert(
      fc.property(hour, hour, (one, other) => {
        const asked = { fromMs: Math.min(one, other) * HOUR_MS, toMs: (Math.max(one, other) + 1) * HOUR_MS };
        const { quarters, added, subtracted } = quartersAndHours(asked, now);
        const ofDays = quarters === undefined ? [] : hoursOfDays(quarters);
        for (let at = asked.fromMs - 48 * HOUR_MS; at < asked.toMs + 48 * HOUR_MS; at += HOUR_MS) {
          const within = (all: readonly TimeSpan[]) =>
            all.filter(({ fromMs, toMs }) => fromMs <= at && at < toMs).length;
          const hourOfDay = (at / HOUR_MS) % 24;
          const met = ofDays.filter(({ fromHour, toHour }) => fromHour <= hourOfDay && hourOfDay < toHour);
          expect(within(met.map(({ days }) => days)) + within(added) - within(subtracted)).toBe(
            within([asked]),
          );
        }
        for (const { fromHour, toHour } of ofDays) expect([fromHour % 6, toHour % 6]).toEqual([0, 0]);
      }),
    );
  });
});
