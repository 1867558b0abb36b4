/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { render, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import type { Scope } from '../../../src/console/api/api-context.tsx';
import type { ConnectEvents } from '../../../src/console/api/event-feed.ts';
import { AUDITED_EVENTS, KEY_EVENTS, pollBeside } from '../../../src/console/api/followed.ts';
import { useLive } from '../../../src/console/api/live.ts';
import { useLivePages } from '../../../src/console/api/live-pages.ts';
import { EVENT_TYPES } from '../../../src/events/event-types.ts';
import { SignedIn, withScriptedGateway } from './support/stage.tsx';

const SCOPES: readonly Scope[] = ['webhooks:read', 'keys:read'];
const gateway = withScriptedGateway();
/** Writes to the open stream. */
let send: ((chunk: string) => void) | undefined;
let connected: number;
const connect: ConnectEvents = async () => {
  connected += 1;
  return new ReadableStream<string>({
    start: (controller) => {
      send = (chunk) => controller.enqueue(chunk);
      send(': open\n\n');
    },
  });
};
const happen = (type: string) => send?.(`id: 1\ndata: {"type":"${type}"}\n\n`);

beforeEach(() => {
  connected = 0;
});

function Keys() {
  const { data } = useLive(['keys'], (client, signal) => client.GET('/consumer-api-key', { signal }), {
    follows: KEY_EVENTS,
    pollMs: false,
  });
  return <p>keys: {data?.apiKeys.length ?? 'none'}</p>;
}

function KeyPages() {
  const { data, loadMore, isBehind, isFollowed, refresh } = useLivePages(
    ['pages'],
    (client, query, signal) => client.GET('/consumer-api-key', { params: { query }, signal }),
    {
      page: ({ apiKeys, nextCursor }) => ({ rows: apiKeys, nextCursor }),
      follows: KEY_EVENTS,
      pollMs: false,
    },
  );
  return (
    <>
      <p>
        {data?.length ?? 'no'} rows, {isFollowed ? 'live' : 'polled'}, {isBehind ? 'behind' : 'newest'}
      </p>
      <button type="button" onClick={loadMore}>
        more
      </button>
      <button type="button" onClick={refresh}>
        refresh
      </button>
    </>
  );
}

function show(scopes: readonly Scope[], part: 'list' | 'pages' = 'list') {
  render(
    <SignedIn url={gateway.url} scopes={scopes} connectEvents={connect}>
      {part === 'list' ? <Keys /> : <KeyPages />}
    </SignedIn>,
  );
}

describe('followed data', () => {
  it('is read again after an event that changes it, and after no other', async () => {
    gateway.reply(200, { apiKeys: [] });
    show(SCOPES);
    await screen.findByText('keys: 0');
    await waitFor(() => expect(send).toBeDefined());
    gateway.reply(200, { apiKeys: [{}] });
    happen('tollgate.key.created');
    await screen.findByText('keys: 1');
    const before = gateway.requests.length;
    happen('tollgate.plan.created');
    gateway.reply(200, { apiKeys: [{}, {}] });
    // Told of later than the event of a plan.
    await new Promise((resolve) => setTimeout(resolve, 0));
    happen('tollgate.key.created');
    await screen.findByText('keys: 2');
    expect(gateway.requests.length - before).toBeLessThanOrEqual(2);
  });

  it('opens no stream for a token that may not hear all that changes it', async () => {
    gateway.reply(200, { apiKeys: [] });
    show(['webhooks:read']);
    await screen.findByText('keys: 0');
    expect(connected).toBe(0);
  });

  it('of many pages stays where it is, and says that it is behind', async () => {
    gateway.reply(200, { apiKeys: [{ name: 'a' }], nextCursor: 'b' });
    show(SCOPES, 'pages');
    await screen.findByText('1 rows, live, newest');
    const user = userEvent.setup();
    await user.click(screen.getByText('more'));
    await screen.findByText('2 rows, live, newest');
    const before = gateway.requests.length;
    happen('tollgate.key.created');
    await screen.findByText('2 rows, live, behind');
    await user.click(screen.getByText('more'));
    await screen.findByText('3 rows, live, behind');
    expect(gateway.requests).toHaveLength(before + 1);
    await user.click(screen.getByText('refresh'));
    await screen.findByText('3 rows, live, newest');
  });

  it('is polled every minute at most, or as seldom as it was', () => {
    expect(pollBeside(true, 5000)).toBe(60_000);
    expect(pollBeside(true, 90_000)).toBe(90_000);
    expect(pollBeside(true, false)).toBe(false);
    expect(pollBeside(false, 5000)).toBe(5000);
  });

  it.each([
    ['keys', KEY_EVENTS],
    ['the audit log', AUDITED_EVENTS],
  ])('needs the scopes of all events of %s', (_, { types, scopes }) => {
    const missing = Object.entries(EVENT_TYPES).filter(
      ([type, { scope, data }]) =>
        types.some((beginning) => type.startsWith(beginning)) &&
        'auditId' in ((data as { readonly properties?: object }).properties ?? {}) &&
        !scopes.includes(scope),
    );
    expect(missing).toEqual([]);
  });
});
