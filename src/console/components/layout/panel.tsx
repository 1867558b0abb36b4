import { type ReactNode, useId } from 'react';
import { classes } from './classes.ts';
import styles from './panel.module.css';

interface PanelProps {
  readonly title: string;
  readonly about?: ReactNode;
  /** At the end of the head: for example a link to the list. */
  readonly action?: ReactNode;
  /** Without padding: for a list or a table. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

/** A titled part of a page. */
export function Panel({ title, about, action, flush = false, children }: PanelProps) {
  const id = useId();
  return (
    <section className={styles.panel} aria-labelledby={id}>
      <div className={styles.head}>
        <div>
          <h2 id={id}>{title}</h2>
          {about !== undefined && <p className={styles.about}>{about}</p>}
        </div>
        {action}
      </div>
      <div className={classes(styles.body, flush && styles.flush)}>{children}</div>
    </section>
  );
}
