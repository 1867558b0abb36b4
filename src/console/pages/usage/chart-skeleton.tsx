import { Skeleton } from '../../components/states/skeleton.tsx';
import styles from './usage.module.css';

/** The placeholder of a chart. */
export function ChartSkeleton() {
  return (
    <div className={styles.chartSkeleton}>
      <Skeleton />
    </div>
  );
}
