import { type ReactNode, useEffect, useRef, useState } from 'react';
import { classes } from './classes.ts';
import styles from './data-table.module.css';

interface ScrollBoxProps {
  readonly label: string;
  readonly isRefreshing: boolean;
  readonly children: ReactNode;
}

/** A box that scrolls sideways if its content is wider. It can be scrolled by the keyboard, too. */
export function ScrollBox({ label, isRefreshing, children }: ScrollBoxProps) {
  const box = useRef<HTMLDivElement>(null);
  const [isOverflowing, setOverflowing] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setOverflowing(element.scrollWidth > element.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    // Observed as well as the box: the table grows with its content, the box with the window.
    for (const child of element.children) observer.observe(child);
    measure();
    return () => observer.disconnect();
  });
  return (
    <div
      ref={box}
      className={classes(styles.box, isRefreshing && styles.refreshing, isOverflowing && styles.overflowing)}
      aria-busy={isRefreshing}
      // A scrolling box must be reachable by the keyboard.
      {...(isOverflowing && { tabIndex: 0, role: 'group', 'aria-label': label })}
    >
      {children}
    </div>
  );
}
