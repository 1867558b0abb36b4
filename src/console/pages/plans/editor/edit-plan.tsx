import { type FormEvent, useState } from 'react';
import { bodyOf } from '../../../../client/management-client.ts';
import { useApi } from '../../../api/api-context.tsx';
import { useChange } from '../../../api/change.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { Button } from '../../../components/forms/button.tsx';
import { Dialog, DialogActions } from '../../../components/layout/dialog.tsx';
import { PageHeader } from '../../../components/layout/page-header.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { toast } from '../../../components/states/toast.tsx';
import type { Plan, PlanTerms } from '../plan.ts';
import styles from '../plans.module.css';
import { DifferenceTable } from './difference-table.tsx';
import { changedFields, planDifferences } from './plan-difference.ts';
import { type DraftFaults, draftOf, readDraft, termsOf } from './plan-draft.ts';
import { faultsOf, leftOverFault } from './plan-faults.ts';
import { PlanForm } from './plan-form.tsx';

/** A version of the plan, and what `If-Match` takes for it. */
interface Version {
  readonly plan: Plan;
  readonly etag: string | undefined;
}

interface EditPlanProps extends Version {
  readonly onDone: () => void;
}

/**
 * Changes a plan: shows what will differ before anything is saved, and saves only over the version that the person has seen. What others do
 * meanwhile never changes the form.
 */
export function EditPlan({ plan, etag, onDone }: EditPlanProps) {
  const { client } = useApi();
  const [base, setBase] = useState<Version>({ plan, etag });
  const [draft, setDraft] = useState(() => draftOf(plan));
  const [faults, setFaults] = useState<DraftFaults>({});
  const [reviewed, setReviewed] = useState<PlanTerms>();
  const [theirs, setTheirs] = useState<Version>();
  const path = { rateLimitId: plan.rateLimitId };
  const save = useChange((api, { terms, over }: { terms: PlanTerms; over: Version }) =>
    api.PATCH('/rate-limit/{rateLimitId}', {
      params: { path, header: over.etag === undefined ? {} : { 'If-Match': over.etag } },
      body: changedFields(termsOf(over.plan), terms),
    }),
  );

  const review = (event: FormEvent) => {
    event.preventDefault();
    save.reset();
    const read = readDraft(draft);
    setFaults(read.faults);
    if (Object.keys(read.faults).length === 0) setReviewed(read.terms);
  };
  const submit = async (terms: PlanTerms, over: Version) => {
    // Others have made the same change meanwhile.
    if (Object.keys(changedFields(termsOf(over.plan), terms)).length === 0) return onDone();
    const saved = await save.submit({ terms, over });
    if (saved === undefined) {
      // Where it was changed once more, that version has to be seen as well.
      setTheirs(undefined);
      return;
    }
    toast.done(
      `The plan ${plan.rateLimitId} is saved`,
      'It holds with the next request of each of its keys.',
    );
    onDone();
  };
  const readTheirs = async () => {
    const call = client.GET('/rate-limit/{rateLimitId}', { params: { path } });
    try {
      const current = await bodyOf(call);
      setTheirs({ plan: current, etag: (await call).response.headers.get('etag') ?? undefined });
    } catch (error) {
      toast.failed('The present version could not be read', faultSentence(error));
    }
  };
  const takeTheirs = (version: Version) => {
    setBase(version);
    setDraft(draftOf(version.plan));
    setReviewed(undefined);
    setTheirs(undefined);
    save.reset();
  };
  const backToForm = () => {
    setReviewed(undefined);
    setTheirs(undefined);
  };

  const all = { ...faultsOf(save.error), ...faults };
  const leftOver = save.errorKind === 'conflict' ? undefined : leftOverFault(save.error);
  return (
    <form className={styles.form} onSubmit={review} noValidate>
      <PageHeader
        title={`Edit ${plan.rateLimitId}`}
        back={{ href: `/plans/${encodeURIComponent(plan.rateLimitId)}`, label: plan.rateLimitId }}
      />
      {leftOver !== undefined && <Notice tone="failed">{leftOver}</Notice>}
      <PlanForm draft={draft} onChange={setDraft} faults={all} />
      <DialogActions>
        <Button onClick={onDone}>Cancel</Button>
        <Button look="primary" type="submit">
          Review changes
        </Button>
      </DialogActions>
      {reviewed !== undefined && save.errorKind !== 'conflict' && (
        <Review
          from={termsOf(base.plan)}
          to={reviewed}
          isPending={save.isPending}
          fault={save.error === undefined ? undefined : faultSentence(save.error)}
          onSave={() => void submit(reviewed, base)}
          onClose={backToForm}
        />
      )}
      {reviewed !== undefined && save.errorKind === 'conflict' && (
        <Conflict
          yours={reviewed}
          base={termsOf(base.plan)}
          theirs={theirs}
          isPending={save.isPending}
          onRead={() => void readTheirs()}
          onTakeTheirs={takeTheirs}
          onSaveYours={(over) => void submit(reviewed, over)}
          onClose={() => {
            backToForm();
            save.reset();
          }}
        />
      )}
    </form>
  );
}

interface ReviewProps {
  readonly from: PlanTerms;
  readonly to: PlanTerms;
  readonly isPending: boolean;
  readonly fault: string | undefined;
  readonly onSave: () => void;
  readonly onClose: () => void;
}

function Review({ from, to, isPending, fault, onSave, onClose }: ReviewProps) {
  const differences = planDifferences(from, to);
  return (
    <Dialog
      open
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
      <DialogActions>
        <Button onClick={onClose}>Back to the form</Button>
        {differences.length > 0 && (
          <Button look="primary" disabled={isPending} onClick={onSave}>
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
  /** Undefined until it has been read. */
  readonly theirs: Version | undefined;
  readonly isPending: boolean;
  readonly onRead: () => void;
  readonly onTakeTheirs: (theirs: Version) => void;
  readonly onSaveYours: (theirs: Version) => void;
  readonly onClose: () => void;
}

/** Another administrator has saved meanwhile: shows both versions, and saves nothing until the person has chosen. */
function Conflict(props: ConflictProps) {
  const { base, yours, theirs, isPending, onRead, onTakeTheirs, onSaveYours, onClose } = props;
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title="Another administrator changed this plan meanwhile"
      description="Nothing of yours is saved yet, and nothing is lost."
    >
      {theirs === undefined ? (
        <DialogActions>
          <Button onClick={onClose}>Back to the form</Button>
          <Button look="primary" onClick={onRead}>
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
            <Button look="primary" disabled={isPending} onClick={() => onSaveYours(theirs)}>
              Save yours over it
            </Button>
          </DialogActions>
        </>
      )}
    </Dialog>
  );
}
