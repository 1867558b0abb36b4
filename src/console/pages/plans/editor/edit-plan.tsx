import { type FormEvent, useState } from 'react';
import { useApi } from '../../../api/api-context.tsx';
import { useChange } from '../../../api/change.ts';
import { changedFields } from '../../../api/changed-fields.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { readTagged } from '../../../api/live.ts';
import { Button } from '../../../components/forms/button.tsx';
import { FormFault } from '../../../components/forms/form-fault.tsx';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { PageHeader } from '../../../components/layout/page-header.tsx';
import { toast } from '../../../components/states/toast.tsx';
import type { PlanTerms } from '../plan-types.ts';
import styles from '../plans.module.css';
import { type DraftFaults, draftOf, readDraft, termsOf } from './plan-draft.ts';
import { faultsOf, leftOverFault, useShownFault } from './plan-faults.ts';
import { PlanForm } from './plan-form.tsx';
import { Conflict, Review, type Version } from './plan-versions.tsx';

interface EditPlanProps extends Version {
  readonly onDone: () => void;
}

/**
 * Changes a plan. It shows the differences before it saves, and saves only over the version that the person has seen. Changes by others
 * never change the form.
 */
export function EditPlan({ plan, etag, onDone }: EditPlanProps) {
  const edit = usePlanEdit({ plan, etag, onDone });
  const { base, draft, reviewed, save } = edit;
  const isConflict = save.errorKind === 'conflict';
  const form = useShownFault(edit.faults);
  return (
    <form ref={form} className={styles.form} onSubmit={edit.review} noValidate>
      <PageHeader
        title={`Edit ${plan.rateLimitId}`}
        back={{ href: `/plans/${encodeURIComponent(plan.rateLimitId)}`, label: plan.rateLimitId }}
      />
      <FormFault error={isConflict ? undefined : leftOverFault(save.error)} />
      <PlanForm draft={draft} onChange={edit.setDraft} faults={{ ...faultsOf(save.error), ...edit.faults }} />
      <DialogActions>
        <Button onClick={onDone}>Cancel</Button>
        <Button look="primary" type="submit">
          Review changes
        </Button>
      </DialogActions>
      {reviewed !== undefined && !isConflict && (
        <Review
          rateLimitId={plan.rateLimitId}
          from={termsOf(base.plan)}
          to={reviewed}
          isPending={save.isPending}
          fault={save.error === undefined ? undefined : faultSentence(save.error)}
          onSave={() => void edit.submit(reviewed, base)}
          onClose={edit.backToForm}
        />
      )}
      {reviewed !== undefined && isConflict && (
        <Conflict
          yours={reviewed}
          base={termsOf(base.plan)}
          theirs={edit.theirs}
          onRead={() => void edit.readTheirs()}
          onTakeTheirs={edit.takeTheirs}
          onSaveYours={(over) => void edit.submit(reviewed, over)}
          onClose={() => {
            edit.backToForm();
            save.reset();
          }}
        />
      )}
    </form>
  );
}

/** The form, the terms under review, and the version that they replace. */
function usePlanEdit({ plan, etag, onDone }: EditPlanProps) {
  const { rateLimitId } = plan;
  const [base, setBase] = useState<Version>({ plan, etag });
  const [draft, setDraft] = useState(() => draftOf(plan));
  const [faults, setFaults] = useState<DraftFaults>({});
  const [reviewed, setReviewed] = useState<PlanTerms>();
  const { theirs, readTheirs, forgetTheirs } = useTheirVersion(rateLimitId);
  const save = usePlanUpdate(rateLimitId);

  const review = (event: FormEvent) => {
    event.preventDefault();
    save.reset();
    const read = readDraft(draft);
    setFaults(read.faults);
    if (Object.keys(read.faults).length === 0) setReviewed(read.terms);
  };
  const submit = async (terms: PlanTerms, over: Version) => {
    // Nothing to change, for example because others have made the same change.
    if (Object.keys(changedFields(termsOf(over.plan), terms)).length === 0) return onDone();
    const saved = await save.submit({ terms, over });
    // After another change by others, their new version must be shown, too.
    if (saved === undefined) return forgetTheirs();
    toast.done(`The plan ${rateLimitId} is saved`, 'It holds with the next request of each of its keys.');
    onDone();
  };
  const backToForm = () => {
    setReviewed(undefined);
    forgetTheirs();
  };
  const takeTheirs = (version: Version) => {
    setBase(version);
    setDraft(draftOf(version.plan));
    backToForm();
    save.reset();
  };
  return {
    base,
    draft,
    setDraft,
    faults,
    reviewed,
    theirs,
    save,
    review,
    submit,
    readTheirs,
    takeTheirs,
    backToForm,
  };
}

function usePlanUpdate(rateLimitId: string) {
  return useChange(
    (api, { terms, over }: { terms: PlanTerms; over: Version }) =>
      api.PATCH('/rate-limit/{rateLimitId}', {
        params: { path: { rateLimitId }, header: over.etag === undefined ? {} : { 'If-Match': over.etag } },
        body: changedFields(termsOf(over.plan), terms),
      }),
    ['plan', rateLimitId],
  );
}

/** The version that another administrator has saved, once it is read. */
function useTheirVersion(rateLimitId: string) {
  const { client } = useApi();
  const [theirs, setTheirs] = useState<Version>();
  const readTheirs = async () => {
    try {
      const call = client.GET('/rate-limit/{rateLimitId}', { params: { path: { rateLimitId } } });
      const { body, etag } = await readTagged(call);
      setTheirs({ plan: body, etag });
    } catch (error) {
      toast.failed('The present version could not be read', faultSentence(error));
    }
  };
  return { theirs, readTheirs, forgetTheirs: () => setTheirs(undefined) };
}
