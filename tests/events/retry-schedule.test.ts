import { expect, it } from '@jest/globals';
import { nextAttemptAt } from '../../src/events/delivery/retry-schedule.ts';

const NOW_MS = Date.UTC(2026, 1, 4, 10);
const HOUR_S = 3600;
const TRIES = Array.from({ length: 10 }, (_, before) => before + 1);

/** The pauses after each try, in seconds. */
function pauses(byte: number, retryAfter: string | null = null): readonly (number | undefined)[] {
  const random = { bytes: (count: number) => Buffer.alloc(count, byte) };
  const attempts = TRIES.map((tries) => nextAttemptAt({ tries, retryAfter, nowMs: NOW_MS }, random));
  return attempts.map((atMs) => atMs && Math.round((atMs - NOW_MS) / 1000));
}

const DOCUMENTED_S = [5, 300, 1800, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_S)];

it('a delivery is tried again after the pauses that the docs name, and then no more', () => {
  expect(pauses(0)).toEqual([...DOCUMENTED_S, undefined]);
});

it('a pause is prolonged by up to a tenth, so that an endpoint does not get all at once', () => {
  expect(pauses(255)).toEqual([...DOCUMENTED_S.map((pause) => Math.round(1.1 * pause)), undefined]);
});

it('Retry-After, in seconds or as a date, prolongs a pause to at most a day, and shortens none', () => {
  const longest = (seconds: number) => DOCUMENTED_S.map((pause) => Math.max(pause, seconds));
  expect(pauses(0, '7200')).toEqual([...longest(2 * HOUR_S), undefined]);
  expect(pauses(0, 'Wed, 04 Feb 2026 13:00:00 GMT')).toEqual([...longest(3 * HOUR_S), undefined]);
  expect(pauses(0, '9999999999')).toEqual([...longest(24 * HOUR_S), undefined]);
  for (const useless of ['0', 'Wed, 04 Feb 2026 09:00:00 GMT', '-5', 'soon', ''])
    expect(pauses(0, useless)).toEqual([...DOCUMENTED_S, undefined]);
});

it('the last retry comes after three days and within four, as docs/billing.md counts on', () => {
  const sum = (byte: number) => pauses(byte).reduce((total: number, pause) => total + (pause ?? 0), 0);
  expect(sum(0)).toBeGreaterThan(3 * 24 * HOUR_S);
  expect(sum(255)).toBeLessThan(4 * 24 * HOUR_S);
});
