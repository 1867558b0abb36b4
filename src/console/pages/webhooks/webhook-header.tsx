import { Ban, CircleCheck, Pencil, RefreshCw, Send, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useScopes } from '../../api/api-context.tsx';
import { useChange } from '../../api/change.ts';
import { faultSentence } from '../../api/fault-kind.ts';
import { Button } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { type MenuItem, MoreActions } from '../../components/forms/menu.tsx';
import { PageHeader } from '../../components/layout/page-header.tsx';
import { toast } from '../../components/states/toast.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { DeleteWebhook } from './delete-webhook.tsx';
import { EditWebhook } from './edit-webhook.tsx';
import { EnableWebhook } from './enable-webhook.tsx';
import { RotateWebhook } from './rotate-webhook.tsx';
import { useMayChange, type Webhook, webhookName } from './shown-webhook.ts';
import { WebhookBadge } from './webhook-states.tsx';
import styles from './webhooks.module.css';

interface WebhookHeaderProps {
  readonly webhook: Webhook;
  /** The entity tag of `webhook`. */
  readonly etag: string | undefined;
}

type Change = 'edit' | 'rotate' | 'enable' | 'delete';

/** The webhook's name and state, and the actions on it. Actions that the token may not do are hidden. */
export function WebhookHeader({ webhook, etag }: WebhookHeaderProps) {
  const { can } = useScopes();
  const mayChange = useMayChange()(webhook);
  const [open, setOpen] = useState<Change>();
  const dialog = { webhook, onClose: () => setOpen(undefined) };
  return (
    <>
      <PageHeader
        title={webhookName(webhook)}
        back={{ href: '/webhooks', label: 'Webhooks' }}
        badge={<WebhookBadge webhook={webhook} />}
        about={<About webhook={webhook} />}
        actions={
          can('webhooks:write') && (
            <>
              {mayChange && webhook.enabled && <TestButton webhook={webhook} />}
              {mayChange && (
                <Button look="primary" onClick={() => setOpen('edit')}>
                  <Pencil aria-hidden="true" />
                  Edit
                </Button>
              )}
              <MoreActions items={itemsOf(webhook, mayChange, setOpen)} />
            </>
          )
        }
      />
      {open === 'edit' && <EditWebhook {...dialog} etag={etag} />}
      {open === 'rotate' && <RotateWebhook {...dialog} />}
      {open === 'enable' && <EnableWebhook {...dialog} />}
      {open === 'delete' && <DeleteWebhook {...dialog} />}
    </>
  );
}

function itemsOf(
  { enabled }: Webhook,
  mayChange: boolean,
  open: (change: Change) => void,
): readonly MenuItem[] {
  const remove = { label: 'Delete', icon: Trash2, danger: true, onSelect: () => open('delete') };
  if (!mayChange) return [remove];
  return [
    { label: 'Rotate the secret', icon: RefreshCw, onSelect: () => open('rotate') },
    {
      label: enabled ? 'Disable' : 'Enable',
      icon: enabled ? Ban : CircleCheck,
      onSelect: () => open('enable'),
    },
    remove,
  ];
}

function TestButton({ webhook: { webhookId } }: { readonly webhook: Webhook }) {
  const test = useChange((client, _: number, key) =>
    client.POST('/tollgate/webhook/{webhookId}/test', {
      params: { path: { webhookId }, header: { 'Idempotency-Key': key } },
    }),
  );
  // Each test is another one, not a repetition.
  const [count, setCount] = useState(1);
  const submit = async () => {
    if ((await test.submit(count)) === undefined) return;
    setCount(count + 1);
    toast.done('A test event is being sent', 'It appears among the deliveries.');
  };
  return (
    <>
      {test.error !== undefined && (
        <span className={styles.testFault} role="alert">
          {faultSentence(test.error)}
        </span>
      )}
      <Button aria-disabled={test.isPending} onClick={submit}>
        <Send aria-hidden="true" />
        Send a test
      </Button>
    </>
  );
}

function About({ webhook: { webhookId, createdAt, lastUpdated } }: { readonly webhook: Webhook }) {
  return (
    <span className={styles.about}>
      <span>
        <code>{webhookId}</code>
        <CopyButton text={webhookId} what="webhook id" />
      </span>
      <span>
        Created <RelativeTime at={createdAt} />
      </span>
      <span>
        Changed <RelativeTime at={lastUpdated} />
      </span>
    </span>
  );
}
