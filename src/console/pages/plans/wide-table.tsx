import type { ReactNode } from 'react';
import styles from './plans.module.css';

/** Wraps a table that scrolls sideways if it is too wide, by the keyboard as well. */
export function WideTable({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls has to be reached by the keyboard
    <section className={styles.wide} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
