import { CircleX, Info, TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import { classes } from '../layout/classes.ts';
import styles from './notice.module.css';

interface NoticeProps {
  readonly tone: 'neutral' | 'limited' | 'failed';
  readonly children: ReactNode;
  /** A button or a link at its end. */
  readonly action?: ReactNode;
}

const ICONS = { neutral: Info, limited: TriangleAlert, failed: CircleX } as const;

/** A sentence across the page about a lasting state. */
export function Notice({ tone, children, action }: NoticeProps) {
  const Icon = ICONS[tone];
  return (
    <div
      className={classes(styles.notice, tone !== 'neutral' && styles[tone])}
      role={tone === 'failed' ? 'alert' : 'status'}
    >
      <Icon aria-hidden="true" />
      <div className={styles.text}>{children}</div>
      {action}
    </div>
  );
}
