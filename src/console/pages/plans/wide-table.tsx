import type { ComponentProps } from 'react';
import { PlainTable } from '../../components/layout/plain-table.tsx';
import styles from './plans.module.css';

interface WideTableProps extends ComponentProps<typeof PlainTable> {
  /** Names the box that scrolls. */
  readonly label: string;
}

/** A table that scrolls sideways if it is too wide, by the keyboard as well. */
export function WideTable({ label, ...table }: WideTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls has to be reached by the keyboard
    <section className={styles.wide} tabIndex={0} aria-label={label}>
      <PlainTable {...table} />
    </section>
  );
}
