import { Button } from '../../../components/forms/button.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import { Dialog, DialogActions } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import type { Plan, PlanTerms } from '../plan-types.ts';
import styles from '../plans.module.css';
import { WideTable } from '../wide-table.tsx';
import { type PlanDifference, planDifferences } from './plan-difference.ts';
import { termsOf } from './plan-draft.ts';
import { PreviewPanel } from './preview-panel.tsx';

/** A version of the plan, and its entity tag for `If-Match`. */
export interface Version {
  readonly plan: Plan;
  readonly etag: string | undefined;
}

interface ReviewProps {
  readonly rateLimitId: string;
  readonly from: PlanTerms;
  readonly to: PlanTerms;
  readonly isPending: boolean;
  readonly fault: string | undefined;
  readonly onSave: () => void;
  readonly onClose: () => void;
}

/** Shows the differences before they are saved. */
export function Review({ rateLimitId, from, to, isPending, fault, onSave, onClose }: ReviewProps) {
  const differences = planDifferences(from, to);
  return (
    <Dialog
      wide
      onClose={onClose}
      title="Review the changes"
      description={
        differences.length === 0
          ? 'Nothing differs from the plan as it is.'
          : 'They hold with the next request of each key that is bound to the plan. A limit with the same period keeps its count.'
      }
    >
      {fault !== undefined && <Notice tone="failed">{fault}</Notice>}
      {differences.length > 0 && <DifferenceTable differences={differences} from="Now" to="After saving" />}
      {differences.length > 0 && <PreviewPanel rateLimitId={rateLimitId} from={from} to={to} />}
      <DialogActions>
        <Button onClick={onClose}>Back to the form</Button>
        {differences.length > 0 && (
          <Button look="primary" aria-disabled={isPending} onClick={onSave}>
            {isPending ? 'Saving…' : 'Save changes'}
          </Button>
        )}
      </DialogActions>
    </Dialog>
  );
}

interface ConflictProps {
  readonly base: PlanTerms;
  readonly yours: PlanTerms;
  /** Undefined until it is read. */
  readonly theirs: Version | undefined;
  readonly onRead: () => void;
  readonly onTakeTheirs: (theirs: Version) => void;
  readonly onSaveYours: (theirs: Version) => void;
  readonly onClose: () => void;
}

/** Shown if the plan was saved meanwhile: has both versions, and saves nothing until the person chooses one. */
export function Conflict(props: ConflictProps) {
  const { base, yours, theirs, onRead, onTakeTheirs, onSaveYours, onClose } = props;
  return (
    <Dialog
      wide
      onClose={onClose}
      title="This plan has changed since you opened it"
      description="By another administrator, or by an earlier attempt of yours to save. Your changes are still here."
    >
      {theirs === undefined ? (
        <DialogActions>
          <Button onClick={onClose}>Back to the form</Button>
          <Button ref={focusAround} look="primary" onClick={onRead}>
            Show both versions
          </Button>
        </DialogActions>
      ) : (
        <>
          <h3>What they changed</h3>
          <DifferenceTable
            differences={planDifferences(base, termsOf(theirs.plan))}
            from="When you began"
            to="Theirs, as it is now"
          />
          <h3>What differs between theirs and yours</h3>
          <DifferenceTable
            differences={planDifferences(termsOf(theirs.plan), yours)}
            from="Theirs, as it is now"
            to="Yours"
          />
          <DialogActions>
            <Button onClick={onClose}>Back to the form</Button>
            <Button onClick={() => onTakeTheirs(theirs)}>Take theirs</Button>
            <Button look="primary" onClick={() => onSaveYours(theirs)}>
              Save yours over it
            </Button>
          </DialogActions>
        </>
      )}
    </Dialog>
  );
}

interface DifferenceTableProps {
  readonly differences: readonly PlanDifference[];
  /** The headings of the two columns. */
  readonly from: string;
  readonly to: string;
}

/** The differences between two versions, side by side. */
function DifferenceTable({ differences, from, to }: DifferenceTableProps) {
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
