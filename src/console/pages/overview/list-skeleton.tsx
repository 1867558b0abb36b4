import { Skeleton } from '../../components/states/skeleton.tsx';
import styles from './overview.module.css';

/** The placeholder of a short list in a panel. */
export function ListSkeleton() {
  return (
    <ul className={styles.list} aria-hidden="true">
      {[1, 2, 3, 4].map((row) => (
        <li key={row}>
          <Skeleton />
        </li>
      ))}
    </ul>
  );
}
