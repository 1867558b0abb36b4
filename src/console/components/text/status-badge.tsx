import { CircleCheck, CircleDashed, CircleX, Info, OctagonPause } from 'lucide-react';
import type { ReactNode } from 'react';
import { classes } from '../layout/classes.ts';
import styles from './status-badge.module.css';

/** `allowed`: fine; `limited`: needs attention; `failed`: does not work; `neutral`: off, or simply a fact; `accent`: a hint. */
export type Tone = 'allowed' | 'limited' | 'failed' | 'neutral' | 'accent';

const ICONS = {
  allowed: CircleCheck,
  limited: OctagonPause,
  failed: CircleX,
  neutral: CircleDashed,
  accent: Info,
} as const;

/** A state as icon and word; the colour only repeats it. */
export function StatusBadge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <span className={classes(styles.badge, tone !== 'neutral' && styles[tone])}>
      <Icon aria-hidden="true" />
      {children}
    </span>
  );
}
