import { useState } from 'react';
import { SUGGESTED_GRACE_SECONDS } from '../../../client/suggested-grace.ts';
import { useChange } from '../../api/change.ts';
import { reasonHeader } from '../../api/reason-header.ts';
import { ChangeForm } from '../../components/forms/change-form.tsx';
import { type Consequences, GraceChoice } from '../../components/forms/grace-choice.tsx';
import { ReasonField } from '../../components/forms/reason-field.tsx';
import { Dialog } from '../../components/layout/dialog.tsx';
import { type WebhookDialogProps, webhookName } from './shown-webhook.ts';
import { WebhookSecret } from './webhook-secret.tsx';

const CONSEQUENCES: Consequences = [
  'Receivers with the previous secret reject events from now on. For a secret that has leaked.',
  'Both secrets sign for an hour: time to replace it by hand.',
  'Both secrets sign for a day: time for a deployment.',
  'Both secrets sign for a week. A receiver can accept either.',
];

/** Gives a webhook a new secret. The previous one signs as well for a grace period. */
export function RotateWebhook({ webhook, onClose }: WebhookDialogProps) {
  const { webhookId } = webhook;
  const [graceSeconds, setGraceSeconds] = useState(SUGGESTED_GRACE_SECONDS);
  const [reason, setReason] = useState('');
  const [secret, setSecret] = useState<string>();
  const rotate = useChange((client, body: { graceSeconds: number }, key) =>
    client.POST('/tollgate/webhook/{webhookId}/rotate', {
      params: { path: { webhookId }, header: { 'Idempotency-Key': key, ...reasonHeader(reason) } },
      body,
    }),
  );
  const submit = async () => {
    const rotated = await rotate.submit({ graceSeconds });
    setSecret(rotated?.secret);
  };
  const name = webhookName(webhook);
  if (secret !== undefined)
    return (
      <Dialog title={`The new secret of “${name}”`} dismissible={false} onClose={onClose}>
        <WebhookSecret webhookId={webhookId} secret={secret} onDone={onClose} />
      </Dialog>
    );
  return (
    <Dialog
      title={`Rotate the secret of “${name}”?`}
      description="Its requests are signed with a new secret. Deliveries go on."
      dismissible={!rotate.isPending}
      onClose={onClose}
    >
      <ChangeForm
        change={rotate}
        submit="Rotate secret"
        pending="Rotating…"
        makesSecret
        onSubmit={submit}
        onCancel={onClose}
      >
        <GraceChoice consequences={CONSEQUENCES} chosen={graceSeconds} onChange={setGraceSeconds} />
        <ReasonField value={reason} onChange={setReason} />
      </ChangeForm>
    </Dialog>
  );
}
