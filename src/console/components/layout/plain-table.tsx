import type { ReactNode } from 'react';
import styles from './plain-table.module.css';

interface PlainTableProps {
  /** Names the table. */
  readonly name?: string | undefined;
  /** The headings, each with the class of its column. */
  readonly heads: readonly (readonly [text: string, className?: string | undefined])[];
  /** The rows. */
  readonly children: ReactNode;
}

/** A short table that is not live, and does not sort. */
export function PlainTable({ name, heads, children }: PlainTableProps) {
  return (
    <table className={styles.table} aria-label={name}>
      <thead>
        <tr>
          {heads.map(([text, className]) => (
            <th key={text} scope="col" className={className}>
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}
