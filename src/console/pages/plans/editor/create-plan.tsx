import { type FormEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { useChange } from '../../../api/change.ts';
import { Button, ButtonLink } from '../../../components/forms/button.tsx';
import { TextField } from '../../../components/forms/field.tsx';
import { FormFault } from '../../../components/forms/form-fault.tsx';
import { DialogActions } from '../../../components/layout/dialog.tsx';
import { PageHeader } from '../../../components/layout/page-header.tsx';
import { toast } from '../../../components/states/toast.tsx';
import type { PlanTerms } from '../plan-types.ts';
import styles from '../plans.module.css';
import { type DraftFaults, EMPTY_PLAN, readDraft } from './plan-draft.ts';
import { faultsOf, leftOverFault, useShownFault } from './plan-faults.ts';
import { PlanForm } from './plan-form.tsx';

/** Creates a plan. Faults are shown beside the fields, and the form keeps everything that was typed. */
export function CreatePlan() {
  const [rateLimitId, setRateLimitId] = useState('');
  const [draft, setDraft] = useState(EMPTY_PLAN);
  const [faults, setFaults] = useState<DraftFaults>({});
  const [, navigate] = useLocation();
  const create = useChange((client, body: PlanTerms & { rateLimitId: string }, key) =>
    client.POST('/rate-limit/create', { params: { header: { 'Idempotency-Key': key } }, body }),
  );
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const read = readDraft(draft);
    const id = rateLimitId.trim();
    const found = id === '' ? { ...read.faults, rateLimitId: 'Give the plan an id.' } : read.faults;
    setFaults(found);
    if (Object.keys(found).length > 0) return;
    const made = await create.submit({ rateLimitId: id, ...read.terms });
    if (made === undefined) return;
    toast.done(`The plan ${made.rateLimitId} is made`);
    navigate(`/plans/${encodeURIComponent(made.rateLimitId)}`);
  };
  const all = { ...faultsOf(create.error), ...faults };
  const form = useShownFault(faults, create.error);
  return (
    <form ref={form} className={styles.form} onSubmit={submit} noValidate>
      <PageHeader title="Create plan" back={{ href: '/plans', label: 'Plans' }} />
      <FormFault error={leftOverFault(create.error)} />
      <PlanForm draft={draft} onChange={setDraft} faults={all}>
        <TextField
          label="Id"
          error={all.rateLimitId}
          hint="Letters, digits, dots, hyphens and underscores. Consumers see it in headers, and it stays as it is."
          autoFocus
          placeholder="gold"
          maxLength={64}
          value={rateLimitId}
          onText={setRateLimitId}
        />
      </PlanForm>
      <DialogActions>
        <ButtonLink href="/plans">Cancel</ButtonLink>
        <Button look="primary" type="submit" aria-disabled={create.isPending}>
          {create.isPending ? 'Creating…' : 'Create plan'}
        </Button>
      </DialogActions>
    </form>
  );
}
