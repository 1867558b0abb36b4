/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { act, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { useLivePages } from '../../../src/console/api/live-pages.ts';
import { DataTable } from '../../../src/console/components/layout/data-table.tsx';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
const { IntersectionObserver: unseen } = globalThis;

/** Of a window that is taller than all rows. As a browser's, it reports once what it begins to observe, and then only what changes. */
class SeenOnce {
  readonly #report: IntersectionObserverCallback;
  #isConnected = true;

  constructor(report: IntersectionObserverCallback) {
    this.#report = report;
  }

  observe(target: Element): void {
    const entry = { target, isIntersecting: true } as unknown as IntersectionObserverEntry;
    queueMicrotask(() => {
      if (this.#isConnected) this.#report([entry], this as unknown as IntersectionObserver);
    });
  }

  disconnect(): void {
    this.#isConnected = false;
  }
}

afterEach(() => {
  jest.restoreAllMocks();
  globalThis.IntersectionObserver = unseen;
});

interface ListProps {
  readonly label: string;
  readonly onCall?: (label: string) => void;
}

function List({ label, onCall }: ListProps) {
  const keys = useLivePages(
    [label],
    (client, query, signal) => {
      onCall?.(label);
      return client.GET('/consumer-api-key', { params: { query }, signal });
    },
    { page: ({ apiKeys, nextCursor }) => ({ rows: apiKeys, nextCursor }), pollMs: false },
  );
  return (
    <>
      <DataTable
        label={label}
        live={keys}
        columns={[{ id: 'name', header: 'Name', cell: ({ name }) => name }]}
        rowId={({ name }) => name}
        empty={<p>none</p>}
        pages={keys}
      />
      <button type="button" onClick={keys.loadMore}>
        more {label}
      </button>
      <button type="button" onClick={keys.refresh}>
        again {label}
      </button>
    </>
  );
}

function FilteredList() {
  const [label, setLabel] = useState('keys');
  return (
    <>
      <button type="button" onClick={() => setLabel('other keys')}>
        other filter
      </button>
      <List label={label} />
    </>
  );
}

const show = (labels: readonly string[], onCall?: (label: string) => void) =>
  gateway.render(
    ['keys:read'],
    labels.map((label) => <List key={label} label={label} {...(onCall && { onCall })} />),
  );

/** A page of one row; `nextCursor` where another one follows. */
function page(name: string, nextCursor?: string) {
  return { apiKeys: [{ name }], ...(nextCursor !== undefined && { nextCursor }) };
}

/** Of a list of three pages. */
function pageAt(url: string) {
  const cursor = new URL(url, gateway.url).searchParams.get('cursor');
  if (cursor === null) return page('a', 'b');
  return cursor === 'b' ? page('b', 'c') : page('c');
}

describe('a list of pages', () => {
  it('stays as it is when the tab comes into view, once more pages are loaded', async () => {
    const calls = jest.fn();
    gateway.reply(200, page('a', 'b'));
    show(['long', 'short'], calls);
    await waitFor(() => expect(screen.getAllByText('a')).toHaveLength(2));
    gateway.reply(200, page('b'));
    await userEvent.setup().click(screen.getByText('more long'));
    await screen.findByText('b');
    calls.mockClear();
    // The rows are old enough to be read again.
    const readAt = Date.now();
    jest.spyOn(Date, 'now').mockImplementation(() => readAt + 60_000);
    gateway.reply(200, page('new'));
    act(() => void document.dispatchEvent(new Event('visibilitychange', { bubbles: true })));
    // In the list of one page.
    await screen.findByText('new');
    expect(calls.mock.calls).toEqual([['short']]);
    expect(screen.getByText('a')).toBeTruthy();
  });

  it('loads page after page while its end stays in sight', async () => {
    globalThis.IntersectionObserver = SeenOnce as unknown as typeof IntersectionObserver;
    gateway.respond(({ url }) => ({ status: 200, body: pageAt(url) }));
    show(['keys']);
    await screen.findByText('c');
    expect(screen.queryByText('Loading more…')).toBeNull();
  });

  it.each([
    ['the list is read again', 0],
    ['the reader asks for it', 1],
  ])('loads a page that has failed when %s', async (_, button) => {
    globalThis.IntersectionObserver = SeenOnce as unknown as typeof IntersectionObserver;
    const away = { status: 503, body: { error: 'Postgres does not respond.', code: 'store_unavailable' } };
    gateway.respond(({ url }) => (url.endsWith('cursor=b') ? away : { status: 200, body: pageAt(url) }));
    show(['keys']);
    await screen.findByText(/The next page was not loaded/);
    expect(screen.queryByText('Loading more…')).toBeNull();
    gateway.respond(({ url }) => ({ status: 200, body: pageAt(url) }));
    await userEvent
      .setup()
      .click(screen.getAllByRole('button', { name: 'Try again' })[button] as HTMLElement);
    await screen.findByText('c');
    expect(screen.getByText('a')).toBeTruthy();
  });

  it('shows no row of the filter before while one that has failed is read again', async () => {
    gateway.reply(200, page('a'));
    gateway.render(['keys:read'], <FilteredList />);
    await screen.findByText('a');
    gateway.reply(400, { error: 'No such filter.' });
    const user = userEvent.setup();
    await user.click(screen.getByText('other filter'));
    const button = await screen.findByRole('button', { name: 'Try again' });
    const asked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    gateway.respond(async () => {
      asked.resolve();
      await release.promise;
      return { status: 200, body: page('b') };
    });
    await user.click(button);
    await asked.promise;
    expect([screen.queryByText('a'), button.isConnected]).toEqual([null, true]);
    release.resolve();
    await screen.findByText('b');
  });

  it('takes a failed refresh for no failure of the next page', async () => {
    gateway.reply(200, page('a', 'b'));
    show(['keys']);
    await screen.findByText('a');
    gateway.reply(503, { error: 'Postgres does not respond.', code: 'store_unavailable' });
    await userEvent.setup().click(screen.getByText('again keys'));
    await screen.findByText(/This is how it was/);
    expect(screen.queryByText(/The next page was not loaded/)).toBeNull();
    gateway.reply(200, page('b'));
    await userEvent.setup().click(screen.getByRole('button', { name: 'Load more' }));
    await screen.findByText('b');
    expect(screen.getByText('a')).toBeTruthy();
  });
});
