/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "America/Sao_Paulo"}
 */
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import { KeyUsagePanel } from '../../../src/console/pages/keys/detail/key-usage-panel.tsx';
import { ScriptedGateway, SignedIn } from './support/stage.tsx';

const gateway = new ScriptedGateway();
beforeAll(() => gateway.start());
afterAll(() => gateway.stop());
afterEach(cleanup);

/** In this time zone 4 November 2018 began at 01:00: the clocks went forward at midnight. */
const DAYS = [
  '2018-11-02T00:00:00-03:00',
  '2018-11-03T00:00:00-03:00',
  '2018-11-04T01:00:00-02:00',
  '2018-11-05T00:00:00-02:00',
  '2018-11-06T00:00:00-02:00',
];
const ONE_REQUEST = { requests: 1, successful: 1, failed: 0, rateLimited: 0, shadowLimited: 0 };

it('the chart of a key has the requests of all days after one without a midnight', async () => {
  window.history.replaceState(null, '', '/tollgate/console/keys/key_1?range=30d');
  gateway.reply(200, {
    ...{ from: DAYS[0], to: '2018-11-07T00:00:00-02:00', completeUntil: '2018-11-07T00:00:00-02:00' },
    ...{ interval: 'day', timeZone: 'America/Sao_Paulo' },
    rows: DAYS.map((start) => ({ start, ...ONE_REQUEST, averageResponseTimeMs: 5, forwarded: 1 })),
  });
  render(
    <SignedIn url={gateway.url} scopes={['usage:read']}>
      <KeyUsagePanel keyId="key_1" />
    </SignedIn>,
  );
  const sentence = await screen.findByText(/ in the last 30 days/);
  expect(sentence.textContent).toBe('5 requests in the last 30 days: 0 limited, 0 failed.');
  // The code that draws is loaded later: the file must not end before.
  await waitFor(() => expect(document.querySelector('canvas')).not.toBeNull());
});
