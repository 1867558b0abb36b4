import { type FormEvent, useState } from 'react';
import { useChange } from '../../api/change.ts';
import { FormFault } from '../../components/forms/form-fault.tsx';
import { Dialog, SubmitActions } from '../../components/layout/dialog.tsx';
import type { Webhook } from './shown-webhook.ts';
import { webhookName } from './shown-webhook.ts';
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
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setMade(await create.submit(bodyOfDraft(draft)));
  };
  if (made !== undefined)
    return (
      <Dialog
        open
        title={`The webhook “${webhookName(made)}” is created`}
        dismissible={false}
        onClose={onClose}
      >
        <WebhookSecret webhookId={made.webhookId} secret={made.secret} onDone={onClose} />
      </Dialog>
    );
  return (
    <Dialog open wide title="Create a webhook" dismissible={!create.isPending} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <FormFault error={create.error} />
        <WebhookForm draft={draft} onChange={setDraft} error={create.error} />
        <SubmitActions
          submit="Create webhook"
          pending="Creating…"
          isPending={create.isPending}
          makesSecret
          onCancel={onClose}
        />
      </form>
    </Dialog>
  );
}
