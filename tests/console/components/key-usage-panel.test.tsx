/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "America/Sao_Paulo"}
 */
import { expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { KeyUsagePanel } from '../../../src/console/pages/keys/detail/key-usage-panel.tsx';
import { renderSignedIn } from './support/stage.tsx';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const stub = withStubbedFetch();

/** In this time zone 4 November 2018 began at 01:00: the clocks went forward at midnight. */
const DAYS = [
  '2018-11-02T00:00:00-03:00',
  '2018-11-03T00:00:00-03:00',
  '2018-11-04T01:00:00-02:00',
  '2018-11-05T00:00:00-02:00',
  '2018-11-06T00:00:00-02:00',
];
const ONE_REQUEST = { requests: 1, successful: 1, failed: 0, rateLimited: 0, shadowLimited: 0 };

const SPAN = { from: '2026-11-28T10:00:00Z', to: '2026-11-29T10:00:00Z' };

it('the chart of a key names the range of its numbers while another one loads', async () => {
  window.history.replaceState(null, '', '/tollgate/console/keys/key_1');
  const days = Promise.withResolvers<void>();
  stub.respond(async ({ url }) => {
    const interval = new URL(url).searchParams.get('interval') ?? '';
    if (interval === 'day') await days.promise;
    const requests = interval === 'day' ? 300 : 10;
    const counts = { ...ONE_REQUEST, requests, successful: requests, forwarded: requests };
    const rows = [{ start: SPAN.from, ...counts, averageResponseTimeMs: 5 }];
    return { status: 200, body: { ...SPAN, interval, timeZone: 'UTC', completeUntil: SPAN.to, rows } };
  });
  renderSignedIn(['usage:read'], <KeyUsagePanel keyId="key_1" />);
  const ofTheDay = await screen.findByText('10 requests in the last 24 hours: 0 limited, 0 failed.');
  await userEvent.selectOptions(screen.getByLabelText('Range'), 'Last 30 days');
  await waitFor(() => expect(ofTheDay.closest('[aria-busy=true]')).not.toBeNull());
  expect(ofTheDay.textContent).toBe('10 requests in the last 24 hours: 0 limited, 0 failed.');
  days.resolve();
  await screen.findByText('300 requests in the last 30 days: 0 limited, 0 failed.');
  expect(document.querySelector('[aria-busy=true]')).toBeNull();
  await waitFor(() => expect(document.querySelector('canvas')).not.toBeNull());
});

it('the chart of a key has the requests of all days after one without a midnight', async () => {
  window.history.replaceState(null, '', '/tollgate/console/keys/key_1?range=30d');
  const body = {
    ...{ from: DAYS[0], to: '2018-11-07T00:00:00-02:00', completeUntil: '2018-11-07T00:00:00-02:00' },
    ...{ interval: 'day', timeZone: 'America/Sao_Paulo' },
    rows: DAYS.map((start) => ({ start, ...ONE_REQUEST, averageResponseTimeMs: 5, forwarded: 1 })),
  };
  stub.respond(() => ({ status: 200, body }));
  renderSignedIn(['usage:read'], <KeyUsagePanel keyId="key_1" />);
  const sentence = await screen.findByText(/ in the last 30 days/);
  expect(sentence.textContent).toBe('5 requests in the last 30 days: 0 limited, 0 failed.');
  // The code that draws is loaded later: the file must not end before.
  await waitFor(() => expect(document.querySelector('canvas')).not.toBeNull());
});
