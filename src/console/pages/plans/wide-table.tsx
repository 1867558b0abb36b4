import type { ReactNode } from 'react';
import styles from './plans.module.css';

interface WideTableProps {
  /** Names the box that scrolls. */
  readonly label: string;
  /** Names the table. */
  readonly name?: string;
  /** The headings, each with the class of its column. */
  readonly heads: readonly (readonly [text: string, className?: string | undefined])[];
  /** The rows. */
  readonly children: ReactNode;
}

/** A table that scrolls sideways if it is too wide, by the keyboard as well. */
export function WideTable({ label, name, heads, children }: WideTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls has to be reached by the keyboard
    <section className={styles.wide} tabIndex={0} aria-label={label}>
      <table className={styles.facts} aria-label={name}>
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
    </section>
  );
}
