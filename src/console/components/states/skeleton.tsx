import { classes } from '../layout/classes.ts';
import styles from './skeleton.module.css';

/** Takes the place of a text that is on its way. */
export function Skeleton({ className }: { readonly className?: string }) {
  return <span className={classes(styles.bar, className)} aria-hidden="true" />;
}
