import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  PERIOD_PATTERN,
  PERIOD_RULE,
  type Period,
  parsePeriod,
  periodFault,
  periodSeconds,
  windowEndMs,
} from '../../src/limiter/period.ts';

const SECONDS = { second: 1, minute: 60, hour: 3600, day: 86_400, week: 604_800 } as const;
const LONGEST = 366 * 86_400;

function token(text: string): string | undefined {
  return parsePeriod(text)?.token;
}

function calendar(months: number): Period {
  return { kind: 'calendar', token: `${months}mo`, months };
}

function endOf(openedAt: string, months: number): string {
  return new Date(windowEndMs(Date.parse(openedAt), calendar(months))).toISOString();
}

const anyCase = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((upper) =>
      [...text].map((letter, index) => (upper[index] ? letter.toUpperCase() : letter)).join(''),
    );

describe('the pattern of periods for clients', () => {
  it('matches each form in any case', () => {
    const pattern = new RegExp(PERIOD_PATTERN);
    const forms = ['hour', '2 weeks', '60 min', '30s', '12h', 'p1y', 'p11m', 'p2w', 'p1dt2h3m4s', 'pt1h'];
    fc.assert(
      fc.property(fc.constantFrom(...forms).chain(anyCase), (text) => {
        expect([text, parsePeriod(text) !== undefined, pattern.test(text)]).toEqual([text, true, true]);
      }),
    );
    for (const text of ['ho', 'hourly', '1 fortnight', 'p', 'pt', '1x'])
      expect(pattern.test(text)).toBe(false);
  });
});

describe('parsePeriod', () => {
  it('reads a count and a unit in any case exactly when the total is 1 s to 366 d', () => {
    const units = fc.constantFrom(...(Object.keys(SECONDS) as (keyof typeof SECONDS)[]));
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 40_000_000 })),
        units.chain((unit) => fc.tuple(fc.constant(unit), fc.oneof(anyCase(unit), anyCase(`${unit}s`)))),
        fc.constantFrom(' ', '  '),
        (count, [unit, written], blank) => {
          const seconds = count * SECONDS[unit];
          const expected = seconds >= 1 && seconds <= LONGEST ? String(seconds * 1000) : undefined;
          expect(token(`${count}${blank}${written}`)).toBe(expected);
        },
      ),
    );
  });

  it('gives every spelling of one length the same token', () => {
    for (const text of [
      'hour',
      'Hours',
      '1 hour',
      '60 minutes',
      '60m',
      '1h',
      '3600s',
      'PT1H',
      'pt60m',
      'PT3600S',
    ]) {
      expect(token(text)).toBe('3600000');
    }
    for (const text of ['1minute', '1min', '60 sec', '60secs', 'min', 'MIN'])
      expect(token(text)).toBe('60000');
    expect(token('48hours')).toBe(token('2 days'));
    expect(token('60 min')).toBe(token('hour'));
    for (const text of ['week', '7 days', '7d', 'P1W', 'P7D']) expect(token(text)).toBe('604800000');
    for (const text of ['month', '1 month', 'P1M', 'p0y1m']) expect(token(text)).toBe('1mo');
    for (const text of ['year', '1 years', '12 months', 'P1Y', 'P12M']) expect(token(text)).toBe('12mo');
    expect(token('P1DT12H')).toBe(token('36 hours'));
  });

  it.each([
    '',
    ' ',
    'hour ',
    ' hour',
    '1 h',
    '1 m',
    '15 mi',
    '15minuts',
    '1mo',
    '2w',
    '-1 hour',
    '+1 hour',
    '1.5 hours',
    '1,5 hours',
    '0 seconds',
    '0s',
    '367d',
    '367 days',
    '53 weeks',
    '13 months',
    '2 years',
    '0 months',
    'P',
    'PT',
    'P1DT',
    'P1M1D',
    'P1Y1D',
    'P1MT1H',
    'P1W1D',
    'PT0S',
    'P0D',
    'P13M',
    'P2Y',
    'P1Y1M',
    'PT1.5S',
    'P-1D',
    '1 hour 30 minutes',
    'hour\n',
    '1\thour',
    '1\nhour',
    '1\u00a0hour',
    '1 \u2003hour',
    'wee\u212a',
    '2 wee\u212as',
    '１ hour',
    'fortnight',
    'PT1H30',
    'per hour',
    '1e3 seconds',
    '0x10 seconds',
    'constructor',
  ])('rejects %j', (text) => {
    expect(parsePeriod(text)).toBeUndefined();
  });

  it.each([
    ['0 seconds', 'it is shorter than 1 second'],
    ['367d', 'it is longer than 366 days'],
    ['9999999999s', 'it is longer than 366 days'],
    ['13 months', 'it is longer than 12 months'],
    ['0 months', 'it is shorter than 1 month'],
    [' hour', 'it has blanks around it'],
    ['1.5 hours', 'its count is not a whole number'],
    ['-1 hour', 'its count has a sign'],
    ['P-1D', 'its count has a sign'],
    ['P1M1D', 'months, years and weeks do not combine with other units'],
    ['P1W1D', 'months, years and weeks do not combine with other units'],
    ['PT', 'it is no ISO 8601 duration'],
    ['60', 'it has no unit'],
    ['3 fortnights', 'its unit is not known'],
    ['1\u00a0hour', 'it has characters that no period has'],
    ['x'.repeat(49), 'it has more than 48 characters'],
    ['1 hour 30 minutes', 'it has none of these forms'],
    ['', 'it has none of these forms'],
  ])('says which rule %j breaks', (text, fault) => {
    expect(periodFault(text)).toBe(fault);
  });

  it('finds no fault with a period', () => {
    for (const text of ['hour', '48hours', '1min', '60 min', 'PT15M', 'P1M'])
      expect(periodFault(text)).toBeUndefined();
  });

  it('rejects a long text without reading it, and never throws', () => {
    expect(parsePeriod(`${'0'.repeat(1_000_000)}1 hour`)).toBeUndefined();
    expect(parsePeriod(`1${' '.repeat(100_000)}hour`)).toBeUndefined();
    fc.assert(fc.property(fc.string(), (text) => void parsePeriod(text)));
  });

  it('accepts every example of the rule that it shows to callers', () => {
    const examples = [...PERIOD_RULE.matchAll(/\b(\d+[smhd]|P[T\d][\dA-Z]+|15 minutes)\b/g)].map(
      ([text]) => text,
    );
    expect(examples.length).toBeGreaterThan(5);
    for (const example of examples) expect(parsePeriod(example)).toBeDefined();
  });
});

describe('windowEndMs', () => {
  it('adds the length of a fixed period', () => {
    expect(windowEndMs(1000, { kind: 'fixed', token: '60000', lengthMs: 60_000 })).toBe(61_000);
  });

  it('counts months in UTC, keeps the time of day and clamps the day', () => {
    expect(endOf('2026-01-31T10:20:30.456Z', 1)).toBe('2026-02-28T10:20:30.456Z');
    expect(endOf('2024-01-31T00:00:00.000Z', 1)).toBe('2024-02-29T00:00:00.000Z');
    expect(endOf('2024-02-29T23:59:59.999Z', 12)).toBe('2025-02-28T23:59:59.999Z');
    expect(endOf('2026-08-31T12:00:00.000Z', 6)).toBe('2027-02-28T12:00:00.000Z');
    expect(endOf('2026-12-15T12:00:00.000Z', 1)).toBe('2027-01-15T12:00:00.000Z');
    expect(endOf('2099-12-31T12:00:00.000Z', 2)).toBe('2100-02-28T12:00:00.000Z');
  });

  it('ends in the right month, on the same day or the last, at the same time', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: Date.UTC(2200, 0) }),
        fc.integer({ min: 1, max: 12 }),
        (openedAtMs, months) => {
          const opened = new Date(openedAtMs);
          const end = new Date(windowEndMs(openedAtMs, calendar(months)));
          const monthIndex = (date: Date) => date.getUTCFullYear() * 12 + date.getUTCMonth();
          expect(monthIndex(end) - monthIndex(opened)).toBe(months);
          expect(end.getTime() % 86_400_000).toBe(openedAtMs % 86_400_000);
          const isLastDay = new Date(end.getTime() + 86_400_000).getUTCDate() === 1;
          if (end.getUTCDate() !== opened.getUTCDate()) {
            expect(isLastDay).toBe(true);
            expect(end.getUTCDate()).toBeLessThan(opened.getUTCDate());
          }
        },
      ),
    );
  });
});

describe('periodSeconds', () => {
  it('is the length of a fixed period and a constant for months and years', () => {
    const seconds = (text: string) => periodSeconds(parsePeriod(text) ?? calendar(0));
    expect(seconds('15 minutes')).toBe(900);
    expect(seconds('month')).toBe(30 * 86_400);
    expect(seconds('3 months')).toBe(90 * 86_400);
    expect(seconds('year')).toBe(365 * 86_400);
  });
});
