import { useChange } from '../../api/change.ts';
import { Button } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { FormFault } from '../../components/forms/form-fault.tsx';
import { Dialog, DialogActions } from '../../components/layout/dialog.tsx';
import { Facts } from '../../components/layout/facts.tsx';
import { PlainTable } from '../../components/layout/plain-table.tsx';
import { ScrollBox } from '../../components/layout/scroll-box.tsx';
import { toast } from '../../components/states/toast.tsx';
import { RelativeTime } from '../../components/text/relative-time.tsx';
import { exactTime } from '../../format/exact-time.ts';
import { type Delivery, useMayChange, type WebhookDialogProps } from './shown-webhook.ts';
import { attemptWords, DeliveryBadge, durationWords } from './webhook-states.tsx';
import styles from './webhooks.module.css';

interface DeliveryDialogProps extends WebhookDialogProps {
  /** As the list had it last: the attempts go on while the dialog is open. */
  readonly delivery: Delivery;
  /** Whether the list still has it, so that `delivery` is as it is now. */
  readonly isListed: boolean;
}

/** A delivery in full: each attempt, and what is sent. */
export function DeliveryDialog({ webhook, delivery, isListed, onClose }: DeliveryDialogProps) {
  const { deliveryId, eventType, attempts, body } = delivery;
  return (
    <Dialog wide title={eventType} onClose={onClose}>
      {!isListed && (
        <p className={styles.hint}>The list no longer has this delivery: this is how it was last.</p>
      )}
      <Facts
        facts={[
          ['Status', <DeliveryBadge key="status" delivery={delivery} />],
          ['Created', exactTime(Date.parse(delivery.createdAt))],
          ['Next attempt', <RelativeTime key="next" at={delivery.nextAttemptAt} missing="none" />],
          [
            'webhook-id',
            <span key="id" className={styles.address}>
              <code>{deliveryId}</code>
              <CopyButton text={deliveryId} what="webhook-id" />
            </span>,
          ],
        ]}
      />
      {attempts.length > 0 && <Attempts attempts={attempts} />}
      <Body body={body} />
      <Resend webhook={webhook} deliveryId={deliveryId} onClose={onClose} />
    </Dialog>
  );
}

function Attempts({ attempts }: Pick<Delivery, 'attempts'>) {
  return (
    <div className={styles.attempts}>
      <ScrollBox label="Attempts" isRefreshing={false}>
        <PlainTable name="Attempts" heads={[['Response'], ['Duration'], ['Time']]}>
          {attempts.map((attempt, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two attempts can be made in one second
            <tr key={index}>
              <td>{attemptWords(attempt)}</td>
              <td>{durationWords(attempt.durationMs)}</td>
              <td>{exactTime(Date.parse(attempt.at))}</td>
            </tr>
          ))}
        </PlainTable>
      </ScrollBox>
    </div>
  );
}

function Body({ body }: Pick<Delivery, 'body'>) {
  return (
    <section className={styles.body} aria-label="Body">
      <div>
        <h3>Body</h3>
        <CopyButton text={body} what="body" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <pre tabIndex={0}>{indented(body)}</pre>
    </section>
  );
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

function Resend({ webhook, deliveryId, onClose }: WebhookDialogProps & Pick<Delivery, 'deliveryId'>) {
  const mayChange = useMayChange();
  const resend = useChange((client, _: undefined, key) =>
    client.POST('/tollgate/webhook/{webhookId}/deliveries/{deliveryId}/resend', {
      params: {
        path: { webhookId: webhook.webhookId, deliveryId },
        header: { 'Idempotency-Key': key },
      },
    }),
  );
  if (!mayChange(webhook)) return null;
  const submit = async () => {
    if ((await resend.submit(undefined)) === undefined) return;
    toast.done(
      'The delivery is being sent again',
      'Under the same webhook-id: receivers that have it drop it.',
    );
    onClose();
  };
  return (
    <>
      <FormFault error={resend.error} />
      <DialogActions>
        {webhook.enabled ? (
          <Button aria-disabled={resend.isPending} onClick={submit}>
            Send again
          </Button>
        ) : (
          <p className={styles.hint}>Enable the webhook to send it again.</p>
        )}
      </DialogActions>
    </>
  );
}
