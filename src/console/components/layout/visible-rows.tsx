import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import styles from './data-table.module.css';

const ROW_PX = 36;
/** Shorter tables are rendered in full. */
const VIRTUAL_FROM = 80;

/** The first and the last row of a long table to render: those in sight. `element` is the ref of the table. */
export function useVisibleRows(count: number) {
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

/** Takes the height of rows that are not rendered. */
export function Spacer({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it holds nothing that could have the focus
    <tr aria-hidden="true">
      <td className={styles.spacer} colSpan={columns} style={{ height: rows * ROW_PX }} />
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
