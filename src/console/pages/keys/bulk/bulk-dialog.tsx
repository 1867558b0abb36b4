import { type MouseEvent, useEffect, useRef, useState } from 'react';
import { ManagementFault } from '../../../../client/management-fault.ts';
import { useScopes } from '../../../api/api-context.tsx';
import { useChange } from '../../../api/change.ts';
import { faultSentence } from '../../../api/fault-kind.ts';
import { reasonHeader } from '../../../api/reason-header.ts';
import { Button } from '../../../components/forms/button.tsx';
import { Form, hasValidFields } from '../../../components/forms/form.tsx';
import { ReasonField } from '../../../components/forms/reason-field.tsx';
import { Dialog, DialogActions } from '../../../components/layout/dialog.tsx';
import { Notice } from '../../../components/states/notice.tsx';
import { counted, formatNumber } from '../../../format/numbers.ts';
import { BulkFields } from './bulk-fields.tsx';
import { BulkProgress } from './bulk-progress.tsx';
import {
  BULK_ACTIONS,
  type BulkRequest,
  bulkRequestOf,
  type ChosenKeys,
  EMPTY_BULK,
} from './bulk-request.ts';

interface BulkDialogProps {
  readonly chosen: ChosenKeys;
  /** The job that deletes the keys has begun. */
  readonly onDelete: () => void;
  readonly onClose: () => void;
}

/** Changes many keys. A dry run says how many they are, and the job begins only with its button, if they are still as many. */
export function BulkDialog({ chosen, onDelete, onClose }: BulkDialogProps) {
  const bulk = useBulk(chosen, onDelete);
  const { checked, jobId } = bulk;
  const found = useRef<HTMLDivElement>(null);
  // The number is read before the change begins: neither a second Enter nor one that is held reaches the button that begins it.
  useEffect(() => {
    if (checked !== undefined) found.current?.focus();
  }, [checked]);
  if (jobId !== undefined)
    return (
      <Dialog title="Changing keys" onClose={onClose}>
        <BulkProgress jobId={jobId} onClose={onClose} />
      </Dialog>
    );
  const { label, sentence } = BULK_ACTIONS[bulk.draft.action];
  // A date may have been typed in part since the check.
  const start = ({ currentTarget: { form } }: MouseEvent<HTMLButtonElement>) => {
    if (form !== null && hasValidFields(form)) void bulk.start();
  };
  const isDanger = bulk.draft.action === 'delete' || bulk.draft.action === 'disable';
  return (
    <Dialog title="Change many keys" onClose={onClose}>
      <Form onSubmit={bulk.check}>
        {bulk.error !== undefined && <Notice tone="failed">{sentenceOf(bulk.error)}</Notice>}
        <BulkFields draft={bulk.draft} onChange={bulk.setDraft} />
        <ReasonField value={bulk.reason} onChange={bulk.setReason} />
        {checked !== undefined && (
          <div ref={found} tabIndex={-1}>
            <Notice tone={isDanger ? 'limited' : 'neutral'}>
              {sentence(counted(checked.total, 'key'), bulk.draft)}
              {checked.notFound > 0 &&
                ` ${counted(checked.notFound, 'key')} of those chosen no longer exist.`}
            </Notice>
          </div>
        )}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          {checked === undefined ? (
            <Button key="check" look="primary" type="submit" aria-disabled={bulk.isPending}>
              Check first
            </Button>
          ) : (
            <Button
              key="start"
              look={isDanger ? 'danger' : 'primary'}
              onClick={start}
              disabled={checked.total === 0}
              aria-disabled={bulk.isPending}
            >
              {label}: {formatNumber(checked.total)} {checked.total === 1 ? 'key' : 'keys'}
            </Button>
          )}
        </DialogActions>
      </Form>
    </Dialog>
  );
}

interface Checked {
  readonly total: number;
  readonly notFound: number;
}

/** The form, what the dry run found, and the job once it has begun. */
function useBulk(chosen: ChosenKeys, onDelete: () => void) {
  const { can } = useScopes();
  const [draft, setDraft] = useState(() =>
    can('keys:write') ? EMPTY_BULK : ({ ...EMPTY_BULK, action: 'delete' } as const),
  );
  const [reason, setReason] = useState('');
  const [checked, setChecked] = useState<Checked>();
  const [jobId, setJobId] = useState<string>();
  const change = useBulkChange();
  const check = async () => {
    const found = await change.submit({ body: { ...bulkRequestOf(chosen, draft), dryRun: true }, reason });
    if (found !== undefined && 'dryRun' in found) setChecked(found);
  };
  const start = async () => {
    if (checked === undefined) return;
    const body = { ...bulkRequestOf(chosen, draft), expectCount: checked.total };
    const job = await change.submit({ body, reason });
    // After a failure it is checked again.
    if (job === undefined) return setChecked(undefined);
    if (!('jobId' in job)) return;
    setJobId(job.jobId);
    if (draft.action === 'delete') onDelete();
  };
  return {
    ...{ draft, reason, checked, jobId, check, start, setReason, error: change.error },
    isPending: change.isPending,
    setDraft: (next: typeof draft) => {
      setDraft(next);
      setChecked(undefined);
      change.reset();
    },
  };
}

function useBulkChange() {
  return useChange((client, { body, reason }: { body: BulkRequest; reason: string }, key) =>
    client.POST('/api-keys/bulk', {
      params: { header: { 'Idempotency-Key': key, ...reasonHeader(reason) } },
      body,
    }),
  );
}

/** Faults of fields by their names: the form has few. */
function sentenceOf(error: unknown): string {
  if (!(error instanceof ManagementFault) || error.fields.length === 0) return faultSentence(error);
  return error.fields.map(({ field, message }) => `${field} ${message}`).join('. ');
}
