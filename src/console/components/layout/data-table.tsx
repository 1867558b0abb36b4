import {
  type ColumnDef,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import {
  type MouseEvent,
  type ReactNode,
  type Ref,
  type RefObject,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useLocation } from 'wouter';
import type { Live } from '../../api/live.ts';
import type { LivePages } from '../../api/live-pages.ts';
import { Button } from '../forms/button.tsx';
import { LiveState } from '../states/live-state.tsx';
import { Skeleton } from '../states/skeleton.tsx';
import { classes } from './classes.ts';
import styles from './data-table.module.css';
import { ScrollBox } from './scroll-box.tsx';
import { LoadingMore, Spacer, useVisibleRows } from './visible-rows.tsx';

const SKELETON_ROWS = 8;

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** Makes the column sortable: by this value, or by the server if the table has `onSort`. */
  readonly sortBy?: (row: Row) => string | number | null | undefined;
  /** `end` for columns of numbers. */
  readonly align?: 'end';
  /** Shows the header only to screen readers: for a column of buttons or sparklines. */
  readonly hiddenHeader?: boolean;
  /** Not shown on a phone, where another column says it. */
  readonly wideOnly?: boolean;
}

export interface Sort {
  readonly column: string;
  readonly order: 'asc' | 'desc';
}

interface DataTableProps<Row> {
  /** Names the table for screen readers, and its content in messages: "keys". */
  readonly label: string;
  readonly live: Live<readonly Row[]>;
  readonly columns: readonly Column<Row>[];
  readonly rowId: (row: Row) => string;
  /** The target of a click on a row. The first cell should have a link to it, for the keyboard. */
  readonly rowHref?: (row: Row) => string;
  /** What a click on a row does where it has no page. The row should have a button that does the same, for the keyboard. */
  readonly onOpen?: (row: Row) => void;
  readonly sort?: Sort | undefined;
  /** If given, the server sorts; otherwise the table sorts its rows. */
  readonly onSort?: (sort: Sort) => void;
  /** Shown instead of a table without rows: either there is nothing at all, or nothing matches the filter, which it offers to clear. */
  readonly empty: ReactNode;
  /** For paginated lists. */
  readonly pages?: Pick<LivePages<Row>, 'hasMore' | 'hasNextPageFailed' | 'loadMore'>;
  /** Further pages are loaded on request alone: a list of one page is read again as it changes, and a longer one is not. */
  readonly staysLive?: boolean;
  /** The number of rows in the whole list, including those not loaded. */
  readonly total?: number | undefined;
}

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });

/** A list as a sortable table with all states of live data. Of a long list only the visible rows are rendered. */
export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, live, columns, empty } = props;
  const skeleton = (
    <div className={styles.box}>
      <table className={styles.table} aria-hidden="true">
        <tbody>
          {Array.from({ length: SKELETON_ROWS }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all the same
            <tr key={index}>
              {columns.map(({ id }) => (
                <td key={id}>
                  <Skeleton />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
  return (
    <LiveState live={live} what={label} skeleton={skeleton}>
      {(rows) => (
        <ScrollBox label={label} isRefreshing={live.status === 'refreshing'}>
          {rows.length === 0 ? empty : <Rows {...props} rows={rows} />}
        </ScrollBox>
      )}
    </LiveState>
  );
}

function Rows<Row extends object>(props: DataTableProps<Row> & { readonly rows: readonly Row[] }) {
  const { label, columns, rowHref, onOpen, live, pages, staysLive = false, total } = props;
  const { sorted, sort, setSort } = useSortedRows(props);
  const { element, first, last, beforePx, afterPx, measure } = useVisibleRows(sorted);
  const focusLoaded = useFocusOnLoaded(element, live.error);
  return (
    <>
      <table className={styles.table} aria-label={label} aria-rowcount={(total ?? sorted.length) + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeaderCell key={column.id} column={column} sort={sort} onSort={setSort} />
            ))}
          </tr>
        </thead>
        <tbody ref={element}>
          <Spacer heightPx={beforePx} columns={columns.length} />
          {sorted.slice(first, last + 1).map(({ id, original }, offset) => (
            <BodyRow
              key={id}
              row={original}
              columns={columns}
              index={first + offset}
              measure={measure}
              href={rowHref?.(original)}
              onOpen={onOpen}
            />
          ))}
          <Spacer heightPx={afterPx} columns={columns.length} />
        </tbody>
      </table>
      {pages?.hasMore && <More live={live} pages={pages} staysLive={staysLive} onRequested={focusLoaded} />}
    </>
  );
}

/**
 * Returns a function for the button that loads more rows, which follow the others: the first of these gets the focus, unless the load fails
 * with an `error`. The button goes with the last page, and would take the focus with it.
 */
function useFocusOnLoaded(
  body: RefObject<HTMLElement | null>,
  error: unknown,
): (button: HTMLElement) => void {
  const pressed = useRef<{ readonly button: HTMLElement; readonly lastRow: Element | undefined }>(undefined);
  useLayoutEffect(() => {
    const loaded = pressed.current?.lastRow?.nextElementSibling;
    const target = loaded?.querySelector<HTMLElement>('a, button, input');
    if (target == null) return;
    const { activeElement } = document;
    // The reader may have moved the focus meanwhile.
    if (activeElement === document.body || activeElement === pressed.current?.button) target.focus();
    pressed.current = undefined;
  });
  useLayoutEffect(() => {
    if (error) pressed.current = undefined;
  }, [error]);
  return (button) => {
    const rows = body.current?.querySelectorAll('[data-index]') ?? [];
    pressed.current = { button, lastRow: [...rows].at(-1) };
  };
}

interface MoreProps<Row> extends Required<Pick<DataTableProps<Row>, 'live' | 'pages' | 'staysLive'>> {
  /** Called as the button loads the next page. */
  readonly onRequested: (button: HTMLElement) => void;
}

/** Loads the next page when the reader comes near it; on request after a failure of any page, and for a list that stays live. */
function More<Row>({ live, pages: { hasNextPageFailed, loadMore }, staysLive, onRequested }: MoreProps<Row>) {
  const { status, dataAt } = live;
  if (staysLive || status === 'unavailable' || status === 'failed')
    return (
      <div className={styles.more}>
        {hasNextPageFailed ? 'The next page was not loaded.' : 'There are more rows.'}{' '}
        <Button
          small
          onClick={({ currentTarget }) => {
            onRequested(currentTarget);
            loadMore();
          }}
        >
          {hasNextPageFailed ? 'Try again' : 'Load more'}
        </Button>
      </div>
    );
  // A new element after each read: of one that stays in sight, a browser says so only once.
  return <LoadingMore key={dataAt} onReached={loadMore} />;
}

/** The rows, sorted by the table unless the server sorts. */
function useSortedRows<Row extends object>(props: DataTableProps<Row> & { readonly rows: readonly Row[] }) {
  const { rows, columns, rowId } = props;
  const [localSort, setLocalSort] = useState(props.sort);
  const sort = props.onSort === undefined ? localSort : props.sort;
  const definitions = useMemo(
    () =>
      columns.map(
        ({ id, sortBy }): ColumnDef<typeof features, Row> => ({
          id,
          // Rows without a value come last in both orders.
          accessorFn: (row) => sortBy?.(row) ?? undefined,
          enableSorting: sortBy !== undefined,
          sortFn: (a, b, column) => compareValues(a.getValue(column), b.getValue(column)),
          sortUndefined: 'last',
        }),
      ),
    [columns],
  );
  const table = useTable({
    features,
    data: rows,
    columns: definitions,
    getRowId: rowId,
    manualSorting: props.onSort !== undefined,
    state: { sorting: sort === undefined ? [] : [{ id: sort.column, desc: sort.order === 'desc' }] },
  });
  return { sorted: table.getRowModel().rows, sort, setSort: props.onSort ?? setLocalSort };
}

interface BodyRowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly index: number;
  readonly measure: Ref<HTMLTableRowElement> | undefined;
  readonly href: string | undefined;
  readonly onOpen: ((row: Row) => void) | undefined;
}

function BodyRow<Row>({ row, columns, index, measure, href, onOpen }: BodyRowProps<Row>) {
  const [, navigate] = useLocation();
  const isLinked = href !== undefined || onOpen !== undefined;
  const open = ({ target, ctrlKey, metaKey, shiftKey }: MouseEvent) => {
    // Links and buttons in the row have their own action, and selected text is meant to be copied. A row's link opens another tab.
    const isOther = (target as Element).closest('a, button, input, label') !== null;
    const isForOtherTab = href !== undefined && (ctrlKey || metaKey || shiftKey);
    if (isOther || isForOtherTab || getSelection()?.isCollapsed === false) return;
    if (href !== undefined) navigate(href);
    else onOpen?.(row);
  };
  return (
    // The click is for the mouse only: the keyboard uses the link in the row.
    <tr
      ref={measure}
      data-index={index}
      // The header is 1.
      aria-rowindex={index + 2}
      className={classes(styles.row, isLinked && styles.linked)}
      onClick={isLinked ? open : undefined}
    >
      {columns.map(({ id, cell, align, wideOnly = false }) => (
        <td key={id} className={cellClass(align, wideOnly)}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}

function cellClass(align: 'end' | undefined, wideOnly: boolean): string {
  return classes(align === 'end' && styles.end, wideOnly && styles.wideOnly);
}

function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

interface HeaderCellProps<Row> {
  readonly column: Column<Row>;
  readonly sort: Sort | undefined;
  readonly onSort: (sort: Sort) => void;
}

function HeaderCell<Row>({ column, sort, onSort }: HeaderCellProps<Row>) {
  const { id, header, sortBy, align, hiddenHeader = false, wideOnly = false } = column;
  const className = cellClass(align, wideOnly);
  if (sortBy === undefined)
    return (
      <th scope="col" className={className}>
        {hiddenHeader ? <span className="visually-hidden">{header}</span> : header}
      </th>
    );
  const order = sort?.column === id ? sort.order : undefined;
  const Icon = order === undefined ? ChevronsUpDown : order === 'asc' ? ArrowUp : ArrowDown;
  return (
    <th
      scope="col"
      className={className}
      aria-sort={order === undefined ? 'none' : order === 'asc' ? 'ascending' : 'descending'}
    >
      <button
        type="button"
        className={styles.sort}
        onClick={() => onSort({ column: id, order: order === 'asc' ? 'desc' : 'asc' })}
      >
        {header}
        <Icon className={order === undefined ? styles.unsorted : undefined} aria-hidden="true" />
      </button>
    </th>
  );
}
