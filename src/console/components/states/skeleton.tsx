import styles from './skeleton.module.css';

/** A placeholder for text that is being loaded. */
export function Skeleton() {
  return <span className={styles.bar} aria-hidden="true" />;
}
