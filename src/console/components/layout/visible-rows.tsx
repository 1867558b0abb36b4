import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';
import styles from './data-table.module.css';

/** The height of a row of one line. */
const ROW_PX = 36;
/** Shorter tables are rendered in full. */
const VIRTUAL_FROM = 80;

/** The rows of a long table to render: those in sight, and some around them. */
export function useVisibleRows(rows: readonly { readonly id: string }[]) {
  const isVirtual = rows.length > VIRTUAL_FROM;
  const { element, topPx } = useTop(isVirtual);
  const expectedPx = useRef(ROW_PX);
  const virtualizer = useWindowVirtualizer<HTMLTableRowElement>({
    count: rows.length,
    estimateSize: () => expectedPx.current,
    measureElement: heightOf,
    // A row keeps its height when others come before it.
    getItemKey: useCallback((index: number) => rows[index]?.id ?? index, [rows]),
    overscan: 12,
    enabled: isVirtual,
    scrollMargin: topPx,
  });
  const items = virtualizer.getVirtualItems();
  const hasItems = items.length > 0;
  // Other rows are expected to be as high as the first ones. So a page is about as long as it was when one comes back to a place in it.
  useLayoutEffect(() => {
    if (!hasItems) return;
    const heights = [...virtualizer.elementsCache.values()].map(heightOf);
    expectedPx.current = heights.reduce((sum, height) => sum + height, 0) / heights.length;
    virtualizer.measure();
  }, [hasItems, virtualizer]);
  if (!isVirtual) return { element, first: 0, last: rows.length - 1, beforePx: 0, afterPx: 0 };
  const endPx = (items.at(-1)?.end ?? topPx) - topPx;
  return {
    /** The ref of the table's body. */
    element,
    first: items[0]?.index ?? 0,
    last: items.at(-1)?.index ?? -1,
    /** The height of the rows that are not rendered. */
    beforePx: (items[0]?.start ?? topPx) - topPx,
    afterPx: virtualizer.getTotalSize() - endPx,
    /** The ref of each row, whose `data-index` is its place among all: rows are as high as their text needs. */
    measure: virtualizer.measureElement,
  };
}

/** How far below the top of the page the rows begin. Read again when the page changes its height: what is above them may be loaded later. */
function useTop(isRead: boolean) {
  const element = useRef<HTMLTableSectionElement>(null);
  const [topPx, setTopPx] = useState(0);
  useLayoutEffect(() => {
    if (!isRead) return;
    const read = () => {
      if (element.current !== null)
        setTopPx(Math.round(element.current.getBoundingClientRect().top + window.scrollY));
    };
    const observer = new ResizeObserver(read);
    observer.observe(document.body);
    read();
    return () => observer.disconnect();
  }, [isRead]);
  return { element, topPx };
}

/** The height of a row in pixels. One that is not displayed has none, and counts as a row of one line. */
function heightOf({ offsetHeight }: HTMLTableRowElement): number {
  return offsetHeight || ROW_PX;
}

/** Takes the height of rows that are not rendered. */
export function Spacer({ heightPx, columns }: { readonly heightPx: number; readonly columns: number }) {
  if (heightPx <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it holds nothing that could have the focus
    <tr aria-hidden="true">
      <td className={styles.spacer} colSpan={columns} style={{ height: heightPx }} />
    </tr>
  );
}

/** Stands below the last row, and calls `onReached` when it is about to come into sight: once, until it is rendered with another `key`. */
export function LoadingMore({ onReached }: { readonly onReached: (() => void) | undefined }) {
  const element = useRef<HTMLDivElement>(null);
  const latest = useRef(onReached);
  useEffect(() => {
    latest.current = onReached;
  });
  useEffect(() => {
    if (element.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) latest.current?.();
      },
      { rootMargin: '600px' },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={element} className={styles.more}>
      Loading more…
    </div>
  );
}
