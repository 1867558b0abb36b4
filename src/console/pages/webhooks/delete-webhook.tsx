import { useState } from 'react';
import { useLocation } from 'wouter';
import { useChange } from '../../api/change.ts';
import { reasonHeader } from '../../api/reason-header.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { ReasonField } from '../../components/forms/reason-field.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { toast } from '../../components/states/toast.tsx';
import { type WebhookDialogProps, webhookName } from './shown-webhook.ts';

/** Explains the consequences before a webhook is deleted for good. */
export function DeleteWebhook({ webhook, onClose }: WebhookDialogProps) {
  const { webhookId } = webhook;
  const name = webhookName(webhook);
  const [, navigate] = useLocation();
  const [reason, setReason] = useState('');
  const remove = useChange((client, _: undefined) =>
    client.DELETE('/tollgate/webhook/{webhookId}', {
      params: { path: { webhookId }, header: reasonHeader(reason) },
    }),
  );
  const submit = async () => {
    if ((await remove.submit(undefined)) === undefined) return;
    toast.done('The webhook is deleted', name);
    navigate('/webhooks');
  };
  return (
    <Dialog
      title={`Delete the webhook “${name}”?`}
      description="Nothing more is sent, and its deliveries are deleted with it, those that wait as well. There is no way back."
      onClose={onClose}
    >
      <ChangeForm
        change={remove}
        submit="Delete webhook"
        pending="Deleting…"
        isDanger
        cancel="Keep it"
        onSubmit={submit}
        onCancel={onClose}
      >
        <ReasonField value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}
