import { SecretOnce } from '../../components/forms/secret-once.tsx';

interface WebhookSecretProps {
  readonly webhookId: string;
  readonly secret: string;
  readonly onDone: () => void;
}

/** Shows the new secret of a webhook once. */
export function WebhookSecret({ webhookId, secret, onDone }: WebhookSecretProps) {
  return (
    <SecretOnce
      secret={secret}
      notice="Give it to the receiver now, which verifies signatures with it. It can’t be shown again."
      file={{ name: `${webhookId}.env`, text: `WEBHOOK_SECRET=${secret}\n` }}
      onDone={onDone}
    />
  );
}
