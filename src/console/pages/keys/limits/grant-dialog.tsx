import { useState } from 'react';
import type { components } from '../../../../client/management-api.ts';
import { useChange } from '../../../api/change.ts';
import { fieldMessage } from '../../../api/fault-kind.ts';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { CountField } from '../../../components/forms/field.tsx';
import { ReasonField } from '../../../components/forms/reason-field.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { toast } from '../../../components/states/toast.tsx';
import { RelativeTime } from '../../../components/text/relative-time.tsx';
import { counted } from '../../../format/numbers.ts';
import { readWhole } from '../../../format/whole-number.ts';
import type { LimitDialogProps } from '../key-model.ts';
import { CustomerField, customerOf } from './customer-field.tsx';

/** Grants more requests in the present window of a limit. */
export function GrantDialog({ keyId, counter, customerId: shown, onClose }: LimitDialogProps) {
  const { limitId, per, open, resetTime } = counter;
  const [typed, setTyped] = useState('100');
  const [customerId, setCustomerId] = useState(shown);
  const [reason, setReason] = useState('');
  const grant = useGrant(keyId);
  const submit = async () => {
    const requests = readWhole(typed, 1).value;
    const body = { limitId, requests, ...customerOf(counter, customerId) };
    const why = reason.trim();
    if ((await grant.submit({ ...body, ...(why !== '' && { reason: why }) })) === undefined) return;
    toast.done(`${counted(requests, 'request')} more for ${limitId}`, 'Until the window ends.');
    onClose();
  };
  return (
    <Dialog
      title={`Give ${limitId} more room`}
      description={
        open === true && per === 'key' ? (
          <>
            The room ends with the window, which resets <RelativeTime at={resetTime} />. For longer, override
            the limit.
          </>
        ) : (
          'The room ends with the window, which opens now if it is not open. For longer, override the limit.'
        )
      }
      onClose={onClose}
    >
      <ChangeForm change={grant} submit="Grant" onSubmit={submit} onCancel={onClose}>
        <CountField
          label="Requests"
          error={fieldMessage(grant.error, 'requests')}
          value={typed}
          onText={setTyped}
        />
        <CustomerField
          counter={counter}
          error={fieldMessage(grant.error, 'customerId')}
          value={customerId}
          onChange={setCustomerId}
        />
        <ReasonField error={fieldMessage(grant.error, 'reason')} value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}

function useGrant(keyId: string) {
  return useChange((client, body: components['schemas']['GrantKeyLimitsRequest'], idempotencyKey) =>
    client.POST('/consumer-api-key/{consumerApiKeyId}/limits/grant', {
      params: { path: { consumerApiKeyId: keyId }, header: { 'Idempotency-Key': idempotencyKey } },
      body,
    }),
  );
}
