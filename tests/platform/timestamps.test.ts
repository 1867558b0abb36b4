import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  isoSeconds,
  isoSecondsUp,
  isoUtcFault,
  LAST_INSTANT_MS,
  parseIsoUtc,
  sqlSeconds,
} from '../../src/platform/timestamps.ts';

const INSTANT_MS = Date.UTC(2026, 1, 3, 4, 5, 6);

describe('timestamps', () => {
  it('shows an instant without fractions in each of the two forms', () => {
    expect(isoSeconds(INSTANT_MS + 999)).toBe('2026-02-03T04:05:06Z');
    expect(sqlSeconds(INSTANT_MS + 999)).toBe('2026-02-03 04:05:06');
  });

  it('rounds up to the next whole second, and leaves a whole second alone', () => {
    expect(isoSecondsUp(INSTANT_MS)).toBe('2026-02-03T04:05:06Z');
    expect(isoSecondsUp(INSTANT_MS + 1)).toBe('2026-02-03T04:05:07Z');
  });

  it('shows an instant after the year 9999 as the last one of that year', () => {
    for (const ms of [LAST_INSTANT_MS, LAST_INSTANT_MS + 1, 9e15, Number.POSITIVE_INFINITY]) {
      expect(isoSeconds(ms)).toBe('9999-12-31T23:59:59Z');
      expect(isoSecondsUp(ms)).toBe('9999-12-31T23:59:59Z');
    }
  });

  it('never shows a reset before it happens, nor a second or more after', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), (ms) => {
        const shownMs = Date.parse(isoSecondsUp(ms));
        expect(shownMs - ms).toBeGreaterThanOrEqual(0);
        expect(shownMs - ms).toBeLessThan(1000);
      }),
    );
  });

  it('reads back what it shows, and cuts fractions', () => {
    expect(parseIsoUtc('2026-02-03T04:05:06Z')).toBe(INSTANT_MS);
    expect(parseIsoUtc('2026-02-03T04:05:06.999Z')).toBe(INSTANT_MS);
    expect(parseIsoUtc('2028-02-29T00:00:00Z')).toBe(Date.UTC(2028, 1, 29));
    expect(parseIsoUtc('2026-02-03T04:05:06+00:00')).toBe(INSTANT_MS);
    expect(parseIsoUtc('2026-02-03T04:05:06.123456+00:00')).toBe(INSTANT_MS);
  });

  it.each([
    '',
    '2026-02-03',
    '2026-02-03 04:05:06',
    '2026-02-03T04:05:06',
    '2026-02-03T04:05:06+01:00',
    '2026-02-03T04:05:06-00:00',
    '2026-02-03T04:05:06Z+00:00',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00.Z',
    '+002026-01-01T00:00:00Z',
    ' 2026-02-03T04:05:06Z',
    '2026-02-03T04:05:06Z\n',
  ])('does not take %j for an instant', (text) => {
    expect(parseIsoUtc(text)).toBeUndefined();
    expect(isoUtcFault(text)).toBeDefined();
  });

  it.each([
    ['2026-02-03T04:05:06+02:00', 'it has an offset: convert it to UTC'],
    ['2026-02-30T00:00:00Z', 'there is no such day or time'],
    ['2026-02-03', 'it has no time of day'],
    ['2026-02-03T04:05:06', 'it does not end with Z'],
    ['next week', 'it has another form'],
  ])('says what is wrong with %s', (text, fault) => {
    expect(isoUtcFault(text)).toBe(fault);
  });

  it('finds nothing wrong with an instant', () => {
    expect(isoUtcFault('2026-02-03T04:05:06+00:00')).toBeUndefined();
  });
});
