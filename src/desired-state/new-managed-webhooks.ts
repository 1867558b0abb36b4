import type { ChangeContext } from '../audit/change-context.ts';
import { requireNoFaults } from '../errors.ts';
import type { PreparedWebhook, WebhookFields } from '../events/webhook-service.ts';
import type { DesiredState } from './desired-state.ts';
import type { PresentState, StateChanges } from './desired-state-store.ts';
import type { Difference, WebhookStep } from './difference.ts';
import { digestOf, writtenWebhook } from './written-state.ts';

/** The part of the webhooks' service that configurations need. */
export interface WebhookMaker {
  /** Throws `WebhookUrlNotAllowed`. */
  checkUrl(url: string): Promise<void>;
  /** A new webhook that is not stored yet, and its secret. */
  prepare(fields: WebhookFields, managedBy: string, change: ChangeContext): PreparedWebhook;
  /** Is called when there may be something to deliver. */
  wake(): void;
}

/** The new secret of a webhook, which is never shown again. */
export interface RevealedWebhookSecret {
  readonly externalId: string;
  readonly webhookId: string;
  readonly secret: string;
}

/** Makes the webhooks that exist only in the configuration. */
export function newManagedWebhooks(
  { webhooks }: Difference,
  { maker, owner }: { readonly maker: WebhookMaker; readonly owner: string },
  change: ChangeContext,
): {
  readonly newWebhooks: StateChanges['newWebhooks'];
  readonly webhookSecrets: readonly RevealedWebhookSecret[];
} {
  const made = webhooks.flatMap(({ action, wanted }) => {
    if (action !== 'create' || wanted === undefined) return [];
    const { stored, secret } = maker.prepare({ ...wanted, headers: {} }, owner, change);
    const managedDigest = digestOf(writtenWebhook(wanted));
    return [{ stored, managedDigest, externalId: wanted.externalId, secret }];
  });
  return {
    newWebhooks: made.map(({ stored, managedDigest }) => ({ stored, managedDigest })),
    webhookSecrets: made.map(({ externalId, stored, secret }) => ({
      externalId,
      webhookId: stored.webhook.id,
      secret,
    })),
  };
}

/** Checks the addresses that are new. Throws `WebhookUrlNotAllowed`. */
export async function checkUrls(
  { webhooks }: DesiredState,
  present: Pick<PresentState, 'webhooks'>,
  maker: WebhookMaker,
): Promise<void> {
  const known = new Set(present.webhooks.map(({ webhook }) => webhook.url));
  await Promise.all(webhooks.filter(({ url }) => !known.has(url)).map(({ url }) => maker.checkUrl(url)));
}

/** Headers often hold a credential of their receiver, and a configuration has none. Throws `InvalidBody`. */
export function requireSameReceivers(desired: DesiredState, steps: readonly WebhookStep[]): void {
  const moved = new Set(steps.flatMap((step) => (isMovedWithHeaders(step) ? (step.wanted ?? []) : [])));
  const message = 'must stay at its scheme, host and port while the webhook has headers: clear them first';
  requireNoFaults(
    desired.webhooks.flatMap((webhook, index) =>
      moved.has(webhook) ? [{ field: `webhooks[${index}].url`, message }] : [],
    ),
  );
}

function isMovedWithHeaders({ before, wanted }: WebhookStep): boolean {
  if (before === undefined || wanted === undefined || before.webhook.headerNames.length === 0) return false;
  return new URL(before.webhook.url).origin !== new URL(wanted.url).origin;
}
