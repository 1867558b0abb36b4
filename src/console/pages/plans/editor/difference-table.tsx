import styles from '../plans.module.css';
import { WideTable } from '../wide-table.tsx';
import type { PlanDifference } from './plan-difference.ts';

interface DifferenceTableProps {
  readonly differences: readonly PlanDifference[];
  /** The headings of the two columns. */
  readonly from: string;
  readonly to: string;
}

/** The differences between two versions, side by side. */
export function DifferenceTable({ differences, from, to }: DifferenceTableProps) {
  if (differences.length === 0) return <p className={styles.none}>Nothing.</p>;
  return (
    <WideTable label="Difference, scrollable" heads={[['What'], [from], [to]]}>
      {differences.map(({ what, from: before, to: after }) => (
        <tr key={what}>
          <th scope="row">{what}</th>
          <td>{before === undefined ? 'not there' : <del className={styles.removed}>{before}</del>}</td>
          <td>{after === undefined ? 'removed' : <ins className={styles.added}>{after}</ins>}</td>
        </tr>
      ))}
    </WideTable>
  );
}
