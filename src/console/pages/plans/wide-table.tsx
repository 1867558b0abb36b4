import type { ReactNode } from 'react';
import styles from './plans.module.css';

/** Around a table that scrolls sideways where it has no room, by the keyboard too. */
export function WideTable({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls has to be reached by the keyboard
    <section className={styles.wide} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}
