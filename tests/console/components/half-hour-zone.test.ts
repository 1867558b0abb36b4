/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "Asia/Kolkata"}
 */
import { expect, it } from '@jest/globals';
import { bucketsOf } from '../../../src/console/pages/usage/buckets.ts';
import { readView, spanOf } from '../../../src/console/pages/usage/usage-view.ts';
import { wholeHours } from '../../../src/usage/series/time-buckets.ts';
import { TimeZone } from '../../../src/usage/series/time-zone.ts';

it.each([
  ['Asia/Kolkata', '', '2026-01-31T18:30:00.000Z', '2026-02-27T18:30:00.000Z'],
  ['UTC', '&zone=utc', '2026-02-01T00:00:00.000Z', '2026-02-28T00:00:00.000Z'],
])('February has the buckets of February in %s', (timeZone, zone, firstDay, lastDay) => {
  const view = readView(new URLSearchParams(`from=2026-02-01&to=2026-02-28${zone}`));
  const { from: fromMs, to: toMs } = spanOf(view, Date.parse('2026-03-31T10:30:00Z'));
  // As in the response of the gateway.
  const span = wholeHours({ fromMs, toMs }, new TimeZone(timeZone));
  const [from, to] = [new Date(span.fromMs).toISOString(), new Date(span.toMs).toISOString()];
  const startsBy = (interval: 'day' | 'month') =>
    bucketsOf({ from, to, interval, timeZone, completeUntil: to, rows: [] }, interval).starts.map((start) =>
      new Date(start).toISOString(),
    );
  const days = startsBy('day');
  expect([days.length, days[0], days.at(-1)]).toEqual([28, firstDay, lastDay]);
  expect(startsBy('month')).toEqual([firstDay]);
});
