/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { act, cleanup, render, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useLivePages } from '../../../src/console/api/live-pages.ts';
import { DataTable } from '../../../src/console/components/layout/data-table.tsx';
import { ScriptedGateway, SignedIn } from './support/stage.tsx';

const gateway = new ScriptedGateway();

beforeAll(() => gateway.start());
afterAll(() => gateway.stop());
beforeEach(() => {
  gateway.requests.length = 0;
});
afterEach(() => {
  cleanup();
  jest.restoreAllMocks();
});

interface ListProps {
  readonly label: string;
  readonly onCall?: (label: string) => void;
}

function List({ label, onCall }: ListProps) {
  const keys = useLivePages(
    [label],
    (client, cursor, signal) => {
      onCall?.(label);
      const query = cursor === undefined ? {} : { cursor };
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
        hasMore={keys.hasMore}
        loadMore={keys.loadMore}
      />
      <button type="button" onClick={keys.loadMore}>
        more {label}
      </button>
    </>
  );
}

function show(labels: readonly string[], onCall?: (label: string) => void) {
  render(
    <SignedIn url={gateway.url} scopes={['keys:read']}>
      {labels.map((label) => (
        <List key={label} label={label} {...(onCall && { onCall })} />
      ))}
    </SignedIn>,
  );
}

/** The next response has one row, and says whether another page follows. */
function page(name: string, nextCursor?: string): void {
  gateway.reply(200, { apiKeys: [{ name }], ...(nextCursor !== undefined && { nextCursor }) });
}

describe('a list of pages', () => {
  it('stays as it is when the tab comes into view, once more pages are loaded', async () => {
    const calls = jest.fn();
    page('a', 'b');
    show(['long', 'short'], calls);
    await waitFor(() => expect(screen.getAllByText('a')).toHaveLength(2));
    page('b');
    await userEvent.setup().click(screen.getByText('more long'));
    await screen.findByText('b');
    calls.mockClear();
    // The rows are old enough to be read again.
    const readAt = Date.now();
    jest.spyOn(Date, 'now').mockImplementation(() => readAt + 60_000);
    page('new');
    act(() => void document.dispatchEvent(new Event('visibilitychange', { bubbles: true })));
    // In the list of one page.
    await screen.findByText('new');
    expect(calls.mock.calls).toEqual([['short']]);
    expect(screen.getByText('a')).toBeTruthy();
  });
});
