/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { OutcomesOfTheDay } from '../../../src/console/pages/overview/outcomes-of-the-day.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const HOUR_MS = 3_600_000;
const gateway = withScriptedGateway();

/** A hundred requests in each full hour of two days, and ten in the hour that runs. */
function usageOf(url: string) {
  const query = new URL(url, 'http://gateway').searchParams;
  const [from = '', to = ''] = [query.get('from') ?? '', query.get('to') ?? ''];
  const last = Date.parse(to) - HOUR_MS;
  const rows = Array.from({ length: 48 }, (_, index) => {
    const startMs = Date.parse(from) + index * HOUR_MS;
    const requests = startMs === last ? 10 : 100;
    const none = { failed: 0, rateLimited: 0, clientErrors: 0, serverErrors: 0, shadowLimited: 0 };
    const counts = { requests, successful: requests, forwarded: requests, ...none };
    return { start: new Date(startMs).toISOString(), ...counts, averageResponseTimeMs: 5 };
  });
  return {
    ...{ from, to, interval: 'hour', timeZone: 'UTC', rows },
    completeUntil: new Date(last).toISOString(),
  };
}

it('the hour that runs is not compared with a whole hour of the day before', async () => {
  gateway.respond(({ url }) => ({ status: 200, body: usageOf(url) }));
  gateway.render(['usage:read'], <OutcomesOfTheDay />);
  const tile = await screen.findByRole('link', { name: /^Requests/ });
  expect(tile.textContent).toContain('2,310');
  expect(tile.textContent).toContain('the same as the day before');
  // The code that draws is loaded later: the file must not end before.
  await waitFor(() => expect(document.querySelector('canvas')).not.toBeNull());
});
