/**
 * @jest-environment ./tests/console/components/support/browser-environment.ts
 * @jest-environment-options {"timeZone": "UTC"}
 */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import type { Scope } from '../../../src/console/api/api-context.tsx';
import { UsagePage } from '../../../src/console/pages/usage-page.tsx';
import { renderSignedIn } from './support/stage.tsx';
import { withStubbedFetch } from './support/stubbed-fetch.ts';

const DAY_MS = 86_400_000;

/** The requests of a series by its length, and of the time before it. */
let requestsOf: (series: { readonly days: number; readonly isBefore: boolean }) => number | Promise<number>;
// The code that draws is loaded later: the page must not go before.
afterEach(() => waitFor(() => expect(document.querySelector('canvas')).not.toBeNull()));
const stub = withStubbedFetch();
beforeEach(() => {
  stub.respond(async ({ url }) => {
    const { searchParams } = new URL(url);
    const [from, to] = ['from', 'to'].map((name) => searchParams.get(name) ?? '') as [string, string];
    const interval = searchParams.get('interval') ?? '';
    if (!searchParams.has('from')) return { status: 200, body: { rateLimits: [] } };
    const days = Math.ceil((Date.parse(to) - Date.parse(from)) / DAY_MS);
    const requests = await requestsOf({ days, isBefore: Date.parse(to) < Date.now() - DAY_MS / 2 });
    if (requests === AWAY) return { status: 503, body: { error: 'Postgres does not respond.' } };
    const counts = { successful: requests, failed: 0, rateLimited: 0, shadowLimited: 0, forwarded: requests };
    const rows = [{ start: startOf(from, interval), requests, ...counts, averageResponseTimeMs: 5 }];
    return { status: 200, body: { from, to, interval, timeZone: 'UTC', completeUntil: to, rows } };
  });
});

const AWAY = -1;

/** Of the first bucket. */
function startOf(from: string, interval: string): string {
  return interval === 'hour' ? `${from.slice(0, 13)}:00:00Z` : `${from.slice(0, 10)}T00:00:00Z`;
}

function open(search: string, scopes: readonly Scope[] = ['usage:read']): void {
  window.history.replaceState(null, '', `/tollgate/console/usage${search}`);
  renderSignedIn(scopes, <UsagePage />);
}

describe('the comparison of usage with the time before', () => {
  it('has no number of another range while the time before is slow', async () => {
    const slow = Promise.withResolvers<number>();
    requestsOf = ({ days, isBefore }) => {
      if (days === 1) return isBefore ? 50 : 100;
      return isBefore ? slow.promise : 700;
    };
    open('?compare=1');
    await screen.findAllByText('100% more than before');
    await userEvent.selectOptions(screen.getByLabelText('Range'), 'Last 7 days');
    await screen.findByText('700 requests in the last 7 days: 0 limited, 0 failed.');
    expect(screen.queryAllByText(/than before|times as many|The time before had/)).toHaveLength(0);
    slow.resolve(1400);
    await screen.findAllByText('50% less than before');
    screen.getByText(/The time before had 1,400 requests\./);
  });

  it.each([
    ['one month, and two before it', '2025-10-31', false],
    ['two months, and two before them', '2025-11-30', true],
  ])('draws months only beside as many of them: %s', async (_, to, isPaired) => {
    requestsOf = ({ days }) => days;
    open(`?from=2025-10-01&to=${to}&interval=month&compare=1`);
    await screen.findByText(/The time before had \d+ requests/);
    expect(screen.queryAllByText('All, the time before')).toHaveLength(isPaired ? 1 : 0);
  });

  it('says that the time before could not be read, until it is', async () => {
    let before = AWAY;
    requestsOf = ({ isBefore }) => (isBefore ? before : 100);
    open('?compare=1');
    await screen.findByText('The time before was not read. Postgres does not respond.');
    before = 50;
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await screen.findAllByText('100% more than before');
    expect(screen.queryByText(/was not read/)).toBeNull();
  });
});

it('the table of usage has the rows of the chosen grouping alone', async () => {
  const counts = { requests: 1, successful: 1, failed: 0, rateLimited: 0, shadowLimited: 0, forwarded: 1 };
  const HOUR = { from: '2026-01-05T10:00:00Z', to: '2026-01-05T11:00:00Z' };
  const groups = {
    endpoint: [{ endpoint: '/v1/orders' }, { endpoint: '/v1/search' }],
    key: [{ consumerApiKeyId: 'key_1', consumerApiKeyName: 'Shop' }],
  };
  stub.respond(({ url }) => {
    const groupBy = new URL(url).searchParams.get('groupBy') as keyof typeof groups | null;
    const rows = (groupBy === null ? [{}] : groups[groupBy]).map((group) => ({
      ...{ start: HOUR.from, averageResponseTimeMs: 5, ...counts },
      ...group,
    }));
    const body = { ...HOUR, completeUntil: HOUR.to, interval: 'hour', timeZone: 'UTC', rows, rateLimits: [] };
    return { status: 200, body };
  });
  open('?groupBy=endpoint', ['usage:read', 'keys:read']);
  await screen.findByText('/v1/orders');
  await userEvent.selectOptions(screen.getByLabelText('Table by'), 'Key');
  await screen.findByRole('link', { name: 'Shop' });
  const table = within(screen.getByRole('table', { name: 'usage by key' }));
  expect(table.getAllByRole('row')).toHaveLength(2);
  expect(stub.sent.filter(({ call }) => call.includes('/consumer-api-key/'))).toEqual([]);
});
