import { expect, it } from '@jest/globals';
import { bucketName } from '../../src/console/components/charts/bucket-name.ts';

const HOUR_MS = 3_600_000;

it.each([
  ['Europe/Berlin', '2026-10-01'],
  ['America/New_York', '2026-10-15'],
  // Clocks go back by half an hour.
  ['Australia/Lord_Howe', '2026-03-20'],
])('no two hours of a month have the same name in %s', (timeZone, firstDay) => {
  const first = Date.parse(firstDay);
  const names = Array.from({ length: 31 * 24 }, (_, hour) =>
    bucketName(first + hour * HOUR_MS, 'time', timeZone),
  );
  const again = names.filter((name, index) => names.indexOf(name) !== index);
  expect(again).toEqual([]);
});

it('an hour is named with its offset from UTC only where clocks go back', () => {
  const nameOf = (start: string) => bucketName(Date.parse(start), 'time', 'Europe/Berlin');
  expect(nameOf('2026-10-25T00:00:00Z')).toMatch(/02:00.*GMT\+2$/);
  expect(nameOf('2026-10-25T01:00:00Z')).toMatch(/02:00.*GMT\+1$/);
  expect(nameOf('2026-10-25T02:00:00Z')).not.toMatch(/GMT/);
});
