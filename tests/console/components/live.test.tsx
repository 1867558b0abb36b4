/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { describe, expect, it, jest } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import type { Scope } from '../../../src/console/api/api-context.tsx';
import { useLive } from '../../../src/console/api/live.ts';
import { LiveState } from '../../../src/console/components/states/live-state.tsx';
import { withScriptedGateway } from './support/stage.tsx';

/** Of `Polled`. */
const POLL_MS = 10;

const gateway = withScriptedGateway();

function Keys() {
  const live = useLive(['keys'], (client, signal) => client.GET('/consumer-api-key', { signal }), {
    scope: 'keys:read',
    pollMs: false,
  });
  return (
    <>
      <p>{live.status}</p>
      <p>keys: {live.data?.apiKeys.length ?? 'none'}</p>
      <p>lacks: {live.requiredScope ?? 'nothing'}</p>
      <p>etag: {live.etag ?? 'none'}</p>
      <button type="button" onClick={live.refresh}>
        refresh
      </button>
    </>
  );
}

function KeysOrFault({ filter = 'none' }: { readonly filter?: string }) {
  const live = useLive(['keys', filter], (client, signal) => client.GET('/consumer-api-key', { signal }));
  return (
    <LiveState live={live} what="keys" skeleton={null}>
      {({ apiKeys }) => `${apiKeys.length} keys`}
    </LiveState>
  );
}

function FilteredKeys() {
  const [filter, setFilter] = useState('first');
  return (
    <>
      <button type="button" onClick={() => setFilter('second')}>
        other filter
      </button>
      <KeysOrFault filter={filter} />
    </>
  );
}

/** Polls the gateway, and as often something that always responds. */
function Polled({ onPoll }: { readonly onPoll: () => void }) {
  useLive(['polled'], (client, signal) => client.GET('/rate-limit', { signal }), { pollMs: POLL_MS });
  const respond = async () => {
    onPoll();
    return { data: {}, response: new Response() };
  };
  useLive(['also'], respond, { pollMs: POLL_MS });
  return null;
}

/** From now on the gateway responds that there are no keys, once it is released. */
function holdKeys() {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  gateway.respond(async () => {
    asked.resolve();
    await released.promise;
    return { status: 200, body: { apiKeys: [] } };
  });
  return { asked: asked.promise, release: released.resolve };
}

function setVisibility(state: 'hidden' | 'visible'): void {
  Object.defineProperty(document, 'visibilityState', { configurable: true, value: state });
  document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
}

/** Resolves after this many times the period of `Polled`, by a timer of the same kind. */
function pollPeriods(count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const timer = setInterval(() => {
      left -= 1;
      if (left > 0) return;
      clearInterval(timer);
      resolve();
    }, POLL_MS);
  });
}

const show = (scopes: readonly Scope[] = ['keys:read']) => gateway.render(scopes, <Keys />);

describe('live data', () => {
  it('stays unavailable while it is read again, until it is there', async () => {
    gateway.reply(503, { error: 'Postgres is away.' });
    gateway.render([], <KeysOrFault />);
    const button = await screen.findByRole('button', { name: 'Try again' });
    const { asked, release } = holdKeys();
    await userEvent.setup().click(button);
    await asked;
    expect(button.isConnected).toBe(true);
    release();
    await screen.findByText('0 keys');
    expect(button.isConnected).toBe(false);
  });

  it('of another filter gives way to the fault of this one, and does not come back at each reading', async () => {
    gateway.reply(200, { apiKeys: [{}] });
    gateway.render([], <FilteredKeys />);
    await screen.findByText('1 keys');
    gateway.reply(400, { error: 'No such filter.' });
    const user = userEvent.setup();
    await user.click(screen.getByRole('button', { name: 'other filter' }));
    const button = await screen.findByRole('button', { name: 'Try again' });
    const { asked, release } = holdKeys();
    await user.click(button);
    await asked;
    expect([screen.queryByText('1 keys'), button.isConnected]).toEqual([null, true]);
    release();
    await screen.findByText('0 keys');
  });

  it('stays while the store is down, and is fresh again when it is back', async () => {
    gateway.reply(200, { apiKeys: [{}, {}] }, { etag: '"7"' });
    show();
    await screen.findByText('ready');
    expect(screen.getByText('keys: 2')).toBeTruthy();
    expect(screen.getByText('etag: "7"')).toBeTruthy();
    const user = userEvent.setup();
    gateway.reply(503, { error: 'Postgres does not respond.', code: 'store_unavailable' });
    await user.click(screen.getByText('refresh'));
    await screen.findByText('unavailable');
    expect(screen.getByText('keys: 2')).toBeTruthy();
    gateway.reply(200, { apiKeys: [] });
    await user.click(screen.getByText('refresh'));
    await screen.findByText('ready');
    expect(screen.getByText('keys: 0')).toBeTruthy();
  });

  it('names the scope that the gateway misses', async () => {
    gateway.reply(403, { error: 'No.', code: 'missing_scope', requiredScope: 'keys:read' });
    show();
    await screen.findByText('no-scope');
    expect(screen.getByText('lacks: keys:read')).toBeTruthy();
  });

  it('is not polled after a 403, of which the audit log has an entry each time', async () => {
    gateway.reply(403, { error: 'Not from here.', code: 'address_not_allowed' });
    const before = gateway.requests.length;
    const onPoll = jest.fn();
    gateway.render([], <Polled onPoll={onPoll} />);
    await waitFor(() => expect(gateway.requests.length).toBeGreaterThan(before));
    onPoll.mockClear();
    await waitFor(() => expect(onPoll.mock.calls.length).toBeGreaterThan(10));
    expect(gateway.requests).toHaveLength(before + 1);
  });

  it('is not polled while the page is hidden, and again once it is seen', async () => {
    gateway.reply(200, { rateLimits: [] });
    const onPoll = jest.fn();
    gateway.render([], <Polled onPoll={onPoll} />);
    await waitFor(() => expect(onPoll.mock.calls.length).toBeGreaterThan(3));
    setVisibility('hidden');
    onPoll.mockClear();
    const requests = gateway.requests.length;
    await pollPeriods(30);
    expect(onPoll).not.toHaveBeenCalled();
    // One may have been on its way.
    expect(gateway.requests.length).toBeLessThanOrEqual(requests + 1);
    setVisibility('visible');
    await waitFor(() => expect(onPoll.mock.calls.length).toBeGreaterThan(3));
  });

  it('is not asked for without the scope', () => {
    const before = gateway.requests.length;
    show(['plans:read']);
    expect(screen.getByText('no-scope')).toBeTruthy();
    expect(screen.getByText('lacks: keys:read')).toBeTruthy();
    expect(gateway.requests).toHaveLength(before);
  });

  it('tells what is not found and what is rejected apart', async () => {
    gateway.reply(404, { error: 'No such key.', code: 'key_not_found' });
    show();
    await screen.findByText('not-found');
    gateway.reply(400, { error: 'The cursor is not valid.', code: 'invalid_cursor' });
    await userEvent.setup().click(screen.getByText('refresh'));
    await screen.findByText('failed');
  });
});
