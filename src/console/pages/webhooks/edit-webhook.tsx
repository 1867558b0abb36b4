import { useState } from 'react';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { ReasonField } from '../../components/forms/reason-field.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { toast } from '../../components/states/toast.tsx';
import { type WebhookDialogProps, webhookName } from './shown-webhook.ts';
import { useWebhookUpdate } from './webhook-change.ts';
import { changesOf, draftOf } from './webhook-draft.ts';
import { WebhookForm } from './webhook-form.tsx';

interface EditWebhookProps extends WebhookDialogProps {
  /** The entity tag of `webhook`. */
  readonly etag: string | undefined;
}

/** Changes a webhook, as it was when the dialog opened: the page behind it goes on. */
export function EditWebhook(props: EditWebhookProps) {
  const { onClose } = props;
  const [{ webhook, etag }] = useState(props);
  const [draft, setDraft] = useState(() => draftOf(webhook));
  const [reason, setReason] = useState('');
  const save = useWebhookUpdate(webhook.webhookId);
  const submit = async () => {
    const changes = changesOf(webhook, draft);
    if (Object.keys(changes).length === 0) return onClose();
    if ((await save.submit({ body: changes, etag, reason })) === undefined) return;
    toast.done('The webhook is saved', 'Events that wait are sent as it is now.');
    onClose();
  };
  return (
    <Dialog wide title={`Edit the webhook “${webhookName(webhook)}”`} onClose={onClose}>
      <ChangeForm
        change={save}
        record="webhook"
        submit="Save changes"
        pending="Saving…"
        onSubmit={submit}
        onCancel={onClose}
      >
        <WebhookForm
          draft={draft}
          onChange={setDraft}
          present={Object.keys(webhook.headers)}
          error={save.error}
        />
        <ReasonField value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}
