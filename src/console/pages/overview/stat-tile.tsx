import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { classes } from '../../components/layout/classes.ts';
import { formatShare } from '../../format/numbers.ts';
import styles from './stat-tile.module.css';

interface StatTileProps {
  readonly name: string;
  readonly icon: LucideIcon;
  readonly tone?: 'limited' | 'failed';
  /** What of the value is compared, and with what of the previous period; undefined if they can't be compared. */
  readonly compared: { readonly now: number; readonly before: number } | undefined;
  readonly children: ReactNode;
  readonly href: string;
}

/** A figure and its change, as a link to what it counts. */
export function StatTile({ name, icon: Icon, tone, compared, children, href }: StatTileProps) {
  return (
    <Link className={styles.tile} href={href}>
      <span className={classes(styles.name, tone !== undefined && styles[tone])}>
        <Icon aria-hidden="true" />
        {name}
      </span>
      <span className={styles.figure}>{children}</span>
      {compared !== undefined && <span className={styles.change}>{changeSentence(compared)}</span>}
    </Link>
  );
}

/** "12% more than the day before". */
function changeSentence({ now, before }: { readonly now: number; readonly before: number }): string {
  if (before === 0) return now === 0 ? 'none the day before either' : 'none the day before';
  const change = (now - before) / before;
  if (Math.abs(change) < 0.005) return 'the same as the day before';
  // Beyond ten times, a factor is easier to read than a percentage.
  if (change >= 9) return `${Math.round(now / before)} times the day before`;
  return `${formatShare(Math.abs(change))} ${change > 0 ? 'more' : 'less'} than the day before`;
}
