import { useState } from 'react';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { ReasonField } from '../../components/forms/reason-field.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { toast } from '../../components/states/toast.tsx';
import { type WebhookDialogProps, webhookName } from './shown-webhook.ts';
import { useWebhookUpdate } from './webhook-change.ts';

/** Disables a webhook, or enables it again. */
export function EnableWebhook({ webhook, onClose }: WebhookDialogProps) {
  // The state when the dialog opened: the gateway may disable the webhook meanwhile.
  const [disables] = useState(webhook.enabled);
  const [reason, setReason] = useState('');
  const update = useWebhookUpdate(webhook.webhookId);
  const submit = async () => {
    if ((await update.submit({ body: { enabled: !disables }, reason })) === undefined) return;
    toast.done(disables ? 'The webhook is disabled' : 'The webhook is enabled');
    onClose();
  };
  const verb = disables ? 'Disable' : 'Enable';
  return (
    <Dialog
      title={`${verb} “${webhookName(webhook)}”?`}
      description={
        disables
          ? 'It misses what happens until it is enabled again: such events are not sent later.'
          : 'It gets the events that happen from now on.'
      }
      onClose={onClose}
    >
      <ChangeForm
        change={update}
        submit={`${verb} webhook`}
        isDanger={disables}
        onSubmit={submit}
        onCancel={onClose}
      >
        <ReasonField value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}
