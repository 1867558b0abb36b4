import { classes } from '../layout/classes.ts';
import styles from './skeleton.module.css';

/** A placeholder for text that is being loaded. */
export function Skeleton({ className }: { readonly className?: string }) {
  return <span className={classes(styles.bar, className)} aria-hidden="true" />;
}
