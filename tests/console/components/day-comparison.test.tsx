/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { OutcomesOfTheDay } from '../../../src/console/pages/overview/outcomes-of-the-day.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const HOUR_MS = 3_600_000;
const gateway = withScriptedGateway();

/** An hour's counts, of which as many requests as named were forwarded. */
function countsOf(requests: number, forwarded = requests) {
  const none = { failed: 0, rateLimited: 0, clientErrors: 0, serverErrors: 0, shadowLimited: 0 };
  const averageResponseTimeMs = forwarded === 0 ? 0 : 5;
  return { requests, successful: requests, forwarded, ...none, averageResponseTimeMs };
}

/** Two days of these counts, by the place of an hour: 0 to 47, of which a tenth has passed. */
function usageOf(url: string, counts: (hour: number) => ReturnType<typeof countsOf>) {
  const query = new URL(url, 'http://gateway').searchParams;
  const [from = '', to = ''] = [query.get('from') ?? '', query.get('to') ?? ''];
  const startOf = (hour: number) => new Date(Date.parse(from) + hour * HOUR_MS).toISOString();
  const rows = Array.from({ length: 48 }, (_, hour) => ({ start: startOf(hour), ...counts(hour) }));
  return {
    ...{ from, to, interval: 'hour', timeZone: 'UTC', rows },
    completeUntil: startOf(47.1),
  };
}

/** The text of a tile over a day of these counts. */
async function tileOf(name: RegExp, counts: (hour: number) => ReturnType<typeof countsOf>) {
  gateway.respond(({ url }) => ({ status: 200, body: usageOf(url, counts) }));
  gateway.render(['usage:read'], <OutcomesOfTheDay />);
  const tile = await screen.findByRole('link', { name });
  // The code that draws is loaded later: the file must not end before.
  await waitFor(() => expect(document.querySelector('canvas')).not.toBeNull());
  return tile.textContent;
}

it('the part of an hour is compared with the same part of that hour the day before', async () => {
  const text = await tileOf(/^Requests/, (hour) => countsOf(hour === 47 ? 10 : 100));
  expect(text).toContain('2,310');
  expect(text).toContain('the same as the day before');
});

it('errors of an hour that runs count beside those of the day before', async () => {
  const text = await tileOf(/^Errors/, (hour) => ({
    ...countsOf(100),
    failed: [0, 47].includes(hour) ? 20 : 0,
  }));
  expect(text).toContain('the same as the day before');
});

it('one error in the hour that runs, the day before, is not a part of one', async () => {
  const text = await tileOf(/^Errors/, (hour) => ({ ...countsOf(100), failed: hour === 23 ? 1 : 0 }));
  expect(text).toContain('none the day before either');
});

it.each([
  ['this day', (hour: number) => hour >= 24],
  ['the day before', (hour: number) => hour < 24],
])('a response time is not compared where %s had no forwarded request', async (_day, isWithout) => {
  const text = await tileOf(/^Response time/, (hour) => countsOf(100, isWithout(hour) ? 0 : 100));
  expect(text).toMatch(/ms$/);
});
