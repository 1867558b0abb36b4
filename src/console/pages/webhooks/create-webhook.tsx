import { useState } from 'react';
import { useChange } from '../../api/change.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { type Webhook, webhookName } from './shown-webhook.ts';
import { bodyOfDraft, EMPTY_WEBHOOK } from './webhook-draft.ts';
import { WebhookForm } from './webhook-form.tsx';
import { WebhookSecret } from './webhook-secret.tsx';

/** Creates a webhook, then shows its secret once. */
export function CreateWebhook({ onClose }: { readonly onClose: () => void }) {
  const [draft, setDraft] = useState(EMPTY_WEBHOOK);
  const [made, setMade] = useState<Webhook & { readonly secret: string }>();
  const create = useChange((client, body: ReturnType<typeof bodyOfDraft>, key) =>
    client.POST('/tollgate/webhook/create', { params: { header: { 'Idempotency-Key': key } }, body }),
  );
  const submit = async () => {
    setMade(await create.submit(bodyOfDraft(draft)));
  };
  if (made !== undefined)
    return (
      <Dialog title={`The webhook “${webhookName(made)}” is created`} dismissible={false} onClose={onClose}>
        <WebhookSecret webhookId={made.webhookId} secret={made.secret} onDone={onClose} />
      </Dialog>
    );
  return (
    <Dialog wide title="Create a webhook" dismissible={!create.isPending} onClose={onClose}>
      <ChangeForm
        change={create}
        submit="Create webhook"
        pending="Creating…"
        makesSecret
        onSubmit={submit}
        onCancel={onClose}
      >
        <WebhookForm draft={draft} onChange={setDraft} error={create.error} />
      </ChangeForm>
    </Dialog>
  );
}
