import type { ReactNode } from 'react';
import styles from './second-line.module.css';

/** On a phone, what the columns that are not shown there say. Stands in the first cell of a row. */
export function SecondLine({ children }: { readonly children: ReactNode }) {
  return <span className={styles.line}>{children}</span>;
}
