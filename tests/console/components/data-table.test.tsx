/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, describe, expect, it } from '@jest/globals';
import { cleanup, fireEvent, screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import type { Live } from '../../../src/console/api/live.ts';
import { type Column, DataTable, type Sort } from '../../../src/console/components/layout/data-table.tsx';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

interface Row {
  readonly name: string;
  readonly requests: number | null;
}

const ROWS: readonly Row[] = [
  { name: 'beta', requests: 20 },
  { name: 'Alpha', requests: 3 },
  { name: 'gamma', requests: null },
];
const COLUMNS: readonly Column<Row>[] = [
  { id: 'name', header: 'Name', cell: ({ name }) => name, sortBy: ({ name }) => name },
  {
    id: 'requests',
    header: 'Requests',
    cell: ({ requests }) => requests,
    sortBy: ({ requests }) => requests,
    align: 'end',
  },
  { id: 'open', header: 'Actions', cell: () => <button type="button">Open</button>, hiddenHeader: true },
];

function live(change: Partial<Live<readonly Row[]>> = {}): Live<readonly Row[]> {
  return {
    status: 'ready',
    data: ROWS,
    dataAt: Date.now(),
    etag: undefined,
    error: undefined,
    requiredScope: undefined,
    refresh: () => undefined,
    ...change,
  };
}

interface Shown {
  readonly of?: Live<readonly Row[]>;
  readonly onSort?: (sort: Sort) => void;
  readonly sort?: Sort;
  readonly onOpen?: (row: Row) => void;
  readonly rowHref?: (row: Row) => string;
}

function show({ of = live(), ...sorting }: Shown = {}) {
  renderSignedIn(
    [],
    <DataTable
      label="keys"
      live={of}
      columns={COLUMNS}
      rowId={({ name }) => name}
      empty={<p>No key yet</p>}
      {...sorting}
    />,
  );
}

/** A table whose last row is on another page, which comes when it is requested, or fails then. */
function GrowingTable({ fails }: { readonly fails: boolean }) {
  const [shown, setShown] = useState({ data: ROWS.slice(0, 2) as readonly Row[], isFailed: false });
  const grow = () => setShown({ data: ROWS, isFailed: false });
  const pages = {
    hasMore: shown.data.length === 2,
    hasNextPageFailed: shown.isFailed,
    loadMore: fails ? () => setShown({ ...shown, isFailed: true }) : grow,
  };
  return (
    <>
      <DataTable
        {...{ label: 'keys', columns: COLUMNS, pages, empty: null }}
        live={live({ data: shown.data, error: shown.isFailed ? 'away' : undefined })}
        rowId={({ name }) => name}
        staysLive
      />
      <button type="button" onClick={grow}>
        Read by itself
      </button>
    </>
  );
}

const names = () =>
  screen
    .getAllByRole('row')
    .slice(1)
    .map((row) => within(row).getAllByRole('cell')[0]?.textContent);

afterEach(cleanup);

describe('a table of the console', () => {
  it('is a real table with a name and sortable headers, without faults for axe', async () => {
    show();
    expect(screen.getByRole('table', { name: 'keys' })).toBeTruthy();
    expect(screen.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('none');
    expect(screen.getByRole('columnheader', { name: 'Actions' }).getAttribute('aria-sort')).toBeNull();
    expect(await axeFaults()).toEqual([]);
  });

  it('sorts by a click and by the keyboard, numbers as numbers, what is missing last', async () => {
    show();
    const user = userEvent.setup();
    await user.click(screen.getByRole('button', { name: 'Requests' }));
    expect(names()).toEqual(['Alpha', 'beta', 'gamma']);
    expect(screen.getByRole('columnheader', { name: 'Requests' }).getAttribute('aria-sort')).toBe(
      'ascending',
    );
    screen.getByRole('button', { name: 'Requests' }).focus();
    await user.keyboard('{Enter}');
    expect(names()).toEqual(['beta', 'Alpha', 'gamma']);
    expect(screen.getByRole('columnheader', { name: 'Requests' }).getAttribute('aria-sort')).toBe(
      'descending',
    );
    await user.click(screen.getByRole('button', { name: 'Name' }));
    expect(names()).toEqual(['Alpha', 'beta', 'gamma']);
  });

  it('leaves the order to the server where the server sorts', async () => {
    const asked: Sort[] = [];
    show({ sort: { column: 'name', order: 'desc' }, onSort: (sort) => asked.push(sort) });
    expect(screen.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('descending');
    await userEvent.setup().click(screen.getByRole('button', { name: 'Requests' }));
    expect(asked).toEqual([{ column: 'requests', order: 'asc' }]);
    expect(names()).toEqual(['beta', 'Alpha', 'gamma']);
  });

  it('draws a part of many rows, and tells how many there are', () => {
    const rows = Array.from({ length: 20_000 }, (_, index) => ({ name: `key ${index}`, requests: index }));
    show({ of: live({ data: rows }) });
    expect(screen.getAllByRole('row').length).toBeLessThan(200);
    expect(screen.getByRole('table').getAttribute('aria-rowcount')).toBe('20001');
  });

  it('says what it loads, what is empty, and which scope is missing', () => {
    show({ of: live({ status: 'loading', data: undefined }) });
    expect(screen.getByText('Loading keys')).toBeTruthy();
    cleanup();
    show({ of: live({ data: [] }) });
    expect(screen.getByText('No key yet')).toBeTruthy();
    cleanup();
    show({ of: live({ status: 'no-scope', data: undefined, requiredScope: 'keys:read' }) });
    expect(screen.getByText('keys:read')).toBeTruthy();
  });

  it('keeps what it had while the store is down, says how old it is, and tries again', async () => {
    let refreshed = 0;
    show({ of: live({ status: 'unavailable', dataAt: Date.now() - 120_000, refresh: () => refreshed++ }) });
    expect(names()).toEqual(['beta', 'Alpha', 'gamma']);
    expect(screen.getByRole('status').textContent).toContain('2 minutes ago');
    await userEvent.setup().click(screen.getByRole('button', { name: 'Try again' }));
    expect(refreshed).toBe(1);
  });

  it.each([
    ['come as requested', false, 'Open'],
    ['come later, after the load of them has failed', true, undefined],
  ])('gives the focus to further rows only if they %s', async (_when, fails, focused) => {
    renderSignedIn([], <GrowingTable fails={fails} />);
    await userEvent.setup().click(screen.getByRole('button', { name: 'Load more' }));
    if (fails) {
      screen.getByRole('button', { name: 'Try again' }).blur();
      fireEvent.click(screen.getByRole('button', { name: 'Read by itself' }));
    }
    expect(names()).toEqual(['beta', 'Alpha', 'gamma']);
    const { activeElement } = document;
    expect(activeElement === document.body ? undefined : activeElement?.textContent).toBe(focused);
  });

  it.each([{ ctrlKey: true }, { metaKey: true }, { shiftKey: true }, {}])(
    'opens a row with a link in this tab only by a plain click, not with %p',
    (modifier) => {
      window.history.replaceState(null, '', '/keys');
      show({ rowHref: ({ name }) => `/keys/${name}` });
      fireEvent.click(screen.getByText('beta'), modifier);
      expect(window.location.pathname).toBe(Object.keys(modifier).length === 0 ? '/keys/beta' : '/keys');
    },
  );

  it('opens a row without a link by any click', () => {
    const opened: string[] = [];
    show({ onOpen: ({ name }) => opened.push(name) });
    for (const modifier of [{ ctrlKey: true }, {}]) fireEvent.click(screen.getByText('beta'), modifier);
    expect(opened).toEqual(['beta', 'beta']);
  });

  it('shows hostile names as text', () => {
    const hostile = `<img src=x onerror=alert(1)>\u202Egnp.exe${'😀'.repeat(128)}`;
    show({ of: live({ data: [{ name: hostile, requests: 1 }] }) });
    expect(names()).toEqual([hostile]);
    expect(document.querySelector('img')).toBeNull();
  });
});
