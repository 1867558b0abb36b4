import { useState } from 'react';
import { Button } from '../../../components/forms/button.tsx';
import { CountField, TextField } from '../../../components/forms/field.tsx';
import { Form } from '../../../components/forms/form.tsx';
import { FormFault } from '../../../components/forms/form-fault.tsx';
import { Dialog, DialogActions } from '../../../components/layout/dialog.tsx';
import { toast } from '../../../components/states/toast.tsx';
import { localTimeZone } from '../../../format/exact-time.ts';
import { formatNumber } from '../../../format/numbers.ts';
import { readWhole } from '../../../format/whole-number.ts';
import { useKeyUpdate } from '../change/key-change.ts';
import { instantOf, localText, messageFor } from '../change/key-draft.ts';
import type { KeyDetail, KeyDialogProps, LimitCounter } from '../key-model.ts';

interface OverrideDialogProps extends KeyDialogProps {
  readonly etag: string;
  readonly counter: LimitCounter;
}

/** Sets another limit for this key than its plan has, for good or until an instant. */
export function OverrideDialog({ apiKey, etag, counter, onClose }: OverrideDialogProps) {
  const { limitId, baseLimit, period } = counter;
  const { opened, update, save } = useOverrides({ apiKey, etag, onClose });
  const present = opened[limitId];
  const [limit, setLimit] = useState(String(present?.limit ?? baseLimit));
  const openedUntil = present?.until === undefined ? '' : localText(Date.parse(present.until));
  const [until, setUntil] = useState(openedUntil);
  const submit = () => {
    const { value } = readWhole(limit, 1);
    // An end that was not edited stays as it is: where clocks go back, a local time may be of two instants.
    const isEdited = instantOf(until) !== instantOf(openedUntil);
    const end = isEdited ? instantOf(until) || undefined : present?.until;
    const override = { limit: value, ...(end !== undefined && { until: end }) };
    return save(
      { ...opened, [limitId]: override },
      `${limitId} is ${formatNumber(value)} per ${period} for this key`,
    );
  };
  const { [limitId]: _, ...others } = opened;
  return (
    <Dialog
      title={`Override ${limitId} for this key`}
      description={`The plan says ${formatNumber(baseLimit)} per ${period}. What is used stays, and the window goes on.`}
      onClose={onClose}
    >
      <Form onSubmit={submit}>
        <FormFault error={update.error} />
        <CountField
          label="Limit"
          error={messageFor(update.error, 'overrides')}
          hint={`Requests per ${period}.`}
          value={limit}
          onText={setLimit}
        />
        <TextField
          label="Until"
          optional
          hint={`For good when empty. In the time zone ${localTimeZone()}.`}
          type="datetime-local"
          step={1}
          value={until}
          onText={setUntil}
        />
        <DialogActions>
          {present !== undefined && (
            <Button onClick={() => save(others, `${limitId} is as the plan says again`)}>
              Remove the override
            </Button>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" aria-disabled={update.isPending}>
            Save
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}

/** All overrides are sent together: those of other limits must still be as they were when the dialog opened. */
function useOverrides({ apiKey, etag, onClose }: Omit<OverrideDialogProps, 'counter'>) {
  const [opened] = useState({ overrides: apiKey.overrides, etag });
  const update = useKeyUpdate(apiKey.consumerApiKeyId);
  const save = async (overrides: KeyDetail['overrides'], done: string) => {
    if ((await update.submit({ body: { overrides }, etag: opened.etag })) === undefined) return;
    toast.done(done, 'It holds with the next request.');
    onClose();
  };
  return { opened: opened.overrides, update, save };
}
