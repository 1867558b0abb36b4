import {
  type ColumnDef,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import { type MouseEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import type { Live } from '../../api/live.ts';
import { LiveState } from '../states/live-state.tsx';
import { Skeleton } from '../states/skeleton.tsx';
import { classes } from './classes.ts';
import styles from './data-table.module.css';

const ROW_PX = 36;
/** Shorter tables are drawn whole. */
const VIRTUAL_FROM = 80;
const SKELETON_ROWS = 8;

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** Makes the column sortable: by this value here, or by the server where the table has `onSort`. */
  readonly sortBy?: (row: Row) => string | number | null | undefined;
  /** Numbers stand at the end. */
  readonly align?: 'end';
  /** The header is for screen readers only: of a column of buttons or sparklines. */
  readonly hiddenHeader?: boolean;
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
  /** Where a click on a row leads. Its first cell should hold the same as a link, for the keyboard. */
  readonly rowHref?: (row: Row) => string;
  readonly sort?: Sort | undefined;
  /** Given: the server sorts. Without: the table sorts what it has. */
  readonly onSort?: (sort: Sort) => void;
  /** Shown instead of a table without rows: nothing there at all, or nothing that matches, with a way to clear the filter. */
  readonly empty: ReactNode;
  /** For lists by page: more rows are on the server. */
  readonly hasMore?: boolean;
  readonly loadMore?: () => void;
  /** All rows of the list, those not loaded included. */
  readonly total?: number | undefined;
}

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });

/** A list as a table: sortable, drawn in part where it is long, with all the states of live data. */
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
        <Box label={label} isRefreshing={live.status === 'refreshing'}>
          {rows.length === 0 ? empty : <Rows {...props} rows={rows} />}
        </Box>
      )}
    </LiveState>
  );
}

interface BoxProps {
  readonly label: string;
  readonly isRefreshing: boolean;
  readonly children: ReactNode;
}

function Box({ label, isRefreshing, children }: BoxProps) {
  const box = useRef<HTMLDivElement>(null);
  const [isOverflowing, setOverflowing] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setOverflowing(element.scrollWidth > element.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    // The table grows with its content, the box with the window.
    for (const child of element.children) observer.observe(child);
    measure();
    return () => observer.disconnect();
  });
  return (
    <div
      ref={box}
      className={classes(styles.box, isRefreshing && styles.refreshing, isOverflowing && styles.overflowing)}
      aria-busy={isRefreshing}
      // Where it scrolls sideways it has to be reached by the keyboard.
      {...(isOverflowing && { tabIndex: 0, role: 'group', 'aria-label': label })}
    >
      {children}
    </div>
  );
}

function Rows<Row extends object>(props: DataTableProps<Row> & { readonly rows: readonly Row[] }) {
  const { label, columns, rowHref, hasMore = false, loadMore, total } = props;
  const { sorted, sort, setSort } = useSortedRows(props);
  const { element, first, last } = useVisibleRows(sorted.length);
  const end = useEndReached(hasMore ? loadMore : undefined);
  return (
    <>
      <table
        ref={element}
        className={styles.table}
        aria-label={label}
        aria-rowcount={(total ?? sorted.length) + 1}
      >
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeaderCell key={column.id} column={column} sort={sort} onSort={setSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer rows={first} columns={columns.length} />
          {sorted.slice(first, last + 1).map(({ id, original }, offset) => (
            <BodyRow
              key={id}
              row={original}
              columns={columns}
              position={first + offset + 2}
              href={rowHref?.(original)}
            />
          ))}
          <Spacer rows={sorted.length - 1 - last} columns={columns.length} />
        </tbody>
      </table>
      {hasMore && (
        <div ref={end} className={styles.more}>
          Loading more…
        </div>
      )}
    </>
  );
}

/** The rows in their order, which is the table's own unless the server sorts. */
function useSortedRows<Row extends object>(props: DataTableProps<Row> & { readonly rows: readonly Row[] }) {
  const { rows, columns, rowId } = props;
  const [localSort, setLocalSort] = useState(props.sort);
  const sort = props.onSort === undefined ? localSort : props.sort;
  const definitions = useMemo(
    () =>
      columns.map(
        ({ id, sortBy }): ColumnDef<typeof features, Row> => ({
          id,
          // What has no value stands last in both orders.
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

/** From which to which row a long table is drawn: those in sight. `element` is the table. */
function useVisibleRows(count: number) {
  const element = useRef<HTMLTableElement>(null);
  const isVirtual = count > VIRTUAL_FROM;
  const virtualizer = useWindowVirtualizer({
    count,
    estimateSize: () => ROW_PX,
    overscan: 12,
    enabled: isVirtual,
    scrollMargin: element.current?.offsetTop ?? 0,
  });
  const items = virtualizer.getVirtualItems();
  return {
    element,
    first: isVirtual ? (items[0]?.index ?? 0) : 0,
    last: isVirtual ? (items.at(-1)?.index ?? -1) : count - 1,
  };
}

interface BodyRowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  /** In the whole table, from 1 for the header on. */
  readonly position: number;
  readonly href: string | undefined;
}

function BodyRow<Row>({ row, columns, position, href }: BodyRowProps<Row>) {
  const [, navigate] = useLocation();
  const open = ({ target }: MouseEvent) => {
    // A link or button in the row does its own; marked text is meant to be copied.
    const isOther = (target as Element).closest('a, button, input') !== null;
    if (href !== undefined && !isOther && getSelection()?.isCollapsed !== false) navigate(href);
  };
  return (
    // For the mouse only; the keyboard has the link in the row.
    <tr
      aria-rowindex={position}
      className={classes(styles.row, href !== undefined && styles.linked)}
      onClick={href === undefined ? undefined : open}
    >
      {columns.map(({ id, cell, align }) => (
        <td key={id} className={align === 'end' ? styles.end : undefined}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
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
  const { id, header, sortBy, align, hiddenHeader = false } = column;
  const className = align === 'end' ? styles.end : undefined;
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

/** Takes the room of rows that are out of sight. */
function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it holds nothing that could have the focus
    <tr aria-hidden="true">
      <td className={styles.spacer} colSpan={columns} style={{ height: rows * ROW_PX }} />
    </tr>
  );
}

/** For the element below the last row: asks for more rows when it is about to come into sight. */
function useEndReached(onEnd: (() => void) | undefined) {
  const element = useRef<HTMLDivElement>(null);
  const latest = useRef(onEnd);
  useEffect(() => {
    latest.current = onEnd;
  });
  const isWatched = onEnd !== undefined;
  useEffect(() => {
    if (!isWatched || element.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) latest.current?.();
      },
      { rootMargin: '600px' },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [isWatched]);
  return element;
}
