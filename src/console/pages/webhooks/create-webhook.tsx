import { type FormEvent, useState } from 'react';
import { useChange } from '../../api/change.ts';
import { Button } from '../../components/forms/button.tsx';
import { Dialog, DialogActions } from '../../components/layout/dialog.tsx';
import type { Webhook } from './shown-webhook.ts';
import { webhookName } from './shown-webhook.ts';
import { bodyOfDraft, EMPTY_WEBHOOK } from './webhook-draft.ts';
import { WebhookFault, WebhookForm } from './webhook-form.tsx';
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
    <Dialog open wide title="Create a webhook" onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <WebhookFault error={create.error} />
        <WebhookForm draft={draft} onChange={setDraft} error={create.error} />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" aria-disabled={create.isPending}>
            {create.isPending ? 'Creating…' : 'Create webhook'}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
