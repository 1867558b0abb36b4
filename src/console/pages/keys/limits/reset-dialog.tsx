import { useState } from 'react';
import type { components } from '../../../../client/management-api.ts';
import { useChange } from '../../../api/change.ts';
import { fieldMessage } from '../../../api/fault-kind.ts';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { ReasonField } from '../../../components/forms/reason-field.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { toast } from '../../../components/states/toast.tsx';
import { formatNumber } from '../../../format/numbers.ts';
import { type LimitDialogProps, quotaOf } from '../key-model.ts';
import { CustomerField, customerOf } from './customer-field.tsx';

/** Closes the window of a limit, so that the next request opens a new one. */
export function ResetDialog({ keyId, counter, customerId: shown, onClose }: LimitDialogProps) {
  const { limitId, used, per } = counter;
  const [customerId, setCustomerId] = useState(shown);
  const [reason, setReason] = useState('');
  const reset = useChange((client, body: components['schemas']['ResetKeyLimitsRequest'], idempotencyKey) =>
    client.POST('/consumer-api-key/{consumerApiKeyId}/limits/reset', {
      params: { path: { consumerApiKeyId: keyId }, header: { 'Idempotency-Key': idempotencyKey } },
      body,
    }),
  );
  const submit = async () => {
    const why = reason.trim();
    const body = { limitId, ...customerOf(counter, customerId), ...(why !== '' && { reason: why }) };
    if ((await reset.submit(body)) === undefined) return;
    toast.done(`${limitId} is reset`, 'The next request opens a new window.');
    onClose();
  };
  return (
    <Dialog
      title={`Reset ${limitId}?`}
      description={
        per === 'key' && used !== null
          ? `The ${formatNumber(used)} of ${formatNumber(quotaOf(counter))} that are used count no longer, and room that was given is gone. The next request opens a new window.`
          : 'What is used counts no longer. The next request opens a new window.'
      }
      onClose={onClose}
    >
      <ChangeForm change={reset} submit="Reset" isDanger onSubmit={submit} onCancel={onClose}>
        <CustomerField
          counter={counter}
          error={fieldMessage(reset.error, 'customerId')}
          value={customerId}
          onChange={setCustomerId}
        />
        <ReasonField error={fieldMessage(reset.error, 'reason')} value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}
