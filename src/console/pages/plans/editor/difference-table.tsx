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
    <WideTable label="Difference, scrollable">
      <table className={styles.facts}>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">{from}</th>
            <th scope="col">{to}</th>
          </tr>
        </thead>
        <tbody>
          {differences.map((difference) => (
            <tr key={difference.what}>
              <th scope="row">{difference.what}</th>
              <td>
                {difference.from === undefined ? (
                  'not there'
                ) : (
                  <del className={styles.removed}>{difference.from}</del>
                )}
              </td>
              <td>
                {difference.to === undefined ? (
                  'removed'
                ) : (
                  <ins className={styles.added}>{difference.to}</ins>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </WideTable>
  );
}
