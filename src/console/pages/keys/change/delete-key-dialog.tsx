import { useState } from 'react';
import { useLocation } from 'wouter';
import { useChange } from '../../../api/change.ts';
import { reasonHeader } from '../../../api/reason-header.ts';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { TextField } from '../../../components/forms/field.tsx';
import { ReasonField } from '../../../components/forms/reason-field.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { toast } from '../../../components/states/toast.tsx';
import { counted } from '../../../format/numbers.ts';
import type { KeyDetail, KeyDialogProps } from '../key-model.ts';
import { RecentUse } from './recent-use.tsx';

/** Deletes a key for good. The end of its id must be typed, because names need not be unique and may be hard to type. */
export function DeleteKeyDialog({ apiKey, onClose }: KeyDialogProps) {
  const { consumerApiKeyId, name } = apiKey;
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState('');
  const [isMissing, setMissing] = useState(false);
  const [, navigate] = useLocation();
  const confirmation = consumerApiKeyId.slice(-4);
  const remove = useKeyDeletion(consumerApiKeyId);
  const submit = async () => {
    const isConfirmed = typed.trim().toUpperCase() === confirmation;
    setMissing(!isConfirmed);
    if (!isConfirmed || (await remove.submit(reason)) === undefined) return;
    toast.done('The key is deleted', name);
    navigate('/keys');
  };
  return (
    <Dialog title={`Delete “${name}”?`} description={<Consequences apiKey={apiKey} />} onClose={onClose}>
      <ChangeForm change={remove} submit="Delete key" isDanger onSubmit={submit} onCancel={onClose}>
        <TextField
          label={
            <>
              Type <code>{confirmation}</code>, the end of its id
            </>
          }
          error={isMissing ? `Type ${confirmation} to delete the key.` : undefined}
          autoComplete="off"
          value={typed}
          onText={setTyped}
        />
        <ReasonField value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}

function useKeyDeletion(consumerApiKeyId: string) {
  return useChange((client, why: string) =>
    client.DELETE('/consumer-api-key/{consumerApiKeyId}', {
      params: { path: { consumerApiKeyId }, header: reasonHeader(why) },
    }),
  );
}

function Consequences({ apiKey }: { readonly apiKey: KeyDetail }) {
  return (
    <>
      <RecentUse apiKey={apiKey} />
      <p>
        From the next request on it gets 401, and this can't be undone. Its{' '}
        {counted(apiKey.usage.totalRequests, 'request')} stay in the usage of all keys.
      </p>
    </>
  );
}
