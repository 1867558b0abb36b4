import { useState } from 'react';
import { ChangeForm } from '../../../components/forms/change-form.tsx';
import { ReasonField } from '../../../components/forms/reason-field.tsx';
import { Dialog } from '../../../components/layout/dialog.tsx';
import { toast } from '../../../components/states/toast.tsx';
import type { KeyDialogProps } from '../key-model.ts';
import { useKeyUpdate } from './key-change.ts';
import { RecentUse } from './recent-use.tsx';

/** Disables a key, or enables it again. */
export function EnableKeyDialog({ apiKey, onClose }: KeyDialogProps) {
  // The state when the dialog opened: a change elsewhere must not reverse the meaning of the button.
  const [disables] = useState(apiKey.enabled);
  const [reason, setReason] = useState('');
  const update = useKeyUpdate(apiKey.consumerApiKeyId);
  const submit = async () => {
    if ((await update.submit({ body: { enabled: !disables }, reason })) === undefined) return;
    toast.done(disables ? 'The key is disabled' : 'The key is enabled');
    onClose();
  };
  return (
    <Dialog
      title={disables ? `Disable “${apiKey.name}”?` : `Enable “${apiKey.name}”?`}
      description={
        disables ? (
          <>
            <RecentUse apiKey={apiKey} />
            <p>From the next request on it gets 401. Nothing is lost: it can be enabled again.</p>
          </>
        ) : (
          'It is valid again with the next request, with the same secret and the same counters.'
        )
      }
      onClose={onClose}
    >
      <ChangeForm
        change={update}
        submit={disables ? 'Disable key' : 'Enable key'}
        isDanger={disables}
        onSubmit={submit}
        onCancel={onClose}
      >
        <ReasonField value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}
