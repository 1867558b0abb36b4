import type { Insertable, Selectable } from 'kysely';
import type { Attempt, Delivery, DeliveryStatus, NewDelivery } from '../../../events/delivery/delivery.ts';
import type { DisabledReason, StoredWebhook } from '../../../events/webhook.ts';
import type { WebhookDeliveriesTable, WebhooksTable } from './events-tables.ts';

/** The webhook that a row holds. */
export function webhookOfRow(row: Selectable<WebhooksTable>): StoredWebhook {
  const webhook = {
    id: row.id,
    url: row.url,
    events: row.events,
    onlyTags: row.only_tags,
    externalId: row.external_id,
    description: row.description,
    enabled: row.enabled,
    batch: row.batch,
    headerNames: row.header_names,
    secretHint: row.secret_hint,
    previousValidUntilMs: row.previous_valid_until?.getTime() ?? null,
    // A later version may have written a reason that this one does not know.
    disabledReason: row.disabled_reason as DisabledReason | null,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    managedBy: row.managed_by,
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
    version: row.version,
  };
  return {
    webhook,
    sealedSecret: Buffer.from(row.sealed_secret),
    previousSealedSecret: row.previous_sealed_secret && Buffer.from(row.previous_sealed_secret),
    sealedHeaders: row.sealed_headers && Buffer.from(row.sealed_headers),
  };
}

/** The columns that a change of a webhook may change. */
export function changedColumns({ webhook, ...sealed }: StoredWebhook) {
  return {
    url: webhook.url,
    events: webhook.events,
    only_tags: webhook.onlyTags,
    external_id: webhook.externalId,
    managed_by: webhook.managedBy,
    description: webhook.description,
    enabled: webhook.enabled,
    batch: webhook.batch,
    header_names: webhook.headerNames,
    secret_hint: webhook.secretHint,
    previous_valid_until: dateOf(webhook.previousValidUntilMs),
    disabled_reason: webhook.disabledReason,
    failing_since: dateOf(webhook.failingSinceMs),
    updated_at: new Date(webhook.updatedAtMs),
    version: webhook.version,
    ...sealedColumns(sealed),
  };
}

/** The columns that depend on the encryption key. */
export function sealedColumns(sealed: Omit<StoredWebhook, 'webhook'>) {
  return {
    sealed_secret: sealed.sealedSecret,
    previous_sealed_secret: sealed.previousSealedSecret,
    sealed_headers: sealed.sealedHeaders,
  };
}

/** The delivery that a row holds. */
export function deliveryOfRow(row: Selectable<WebhookDeliveriesTable>): Delivery {
  return {
    id: row.id,
    webhookId: row.webhook_id,
    createdAtMs: row.created_at.getTime(),
    eventType: row.event_type,
    eventIds: row.event_ids,
    tags: row.tags,
    eventTags: row.event_tags === null ? null : (JSON.parse(row.event_tags) as string[][]),
    isBatch: row.is_batch,
    body: row.body,
    // Only this program writes these columns.
    status: row.status as DeliveryStatus,
    nextAttemptAtMs: row.next_attempt_at?.getTime() ?? null,
    tries: row.tries,
    attempts: JSON.parse(row.attempts) as Attempt[],
  };
}

/** The row of a delivery that is due at once. */
export function rowOfDelivery(delivery: NewDelivery): Insertable<WebhookDeliveriesTable> {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    created_at: new Date(delivery.createdAtMs),
    event_type: delivery.eventType,
    event_ids: delivery.eventIds,
    tags: delivery.tags,
    event_tags: delivery.eventTags && JSON.stringify(delivery.eventTags),
    is_batch: delivery.isBatch,
    body: delivery.body,
    status: 'pending',
    next_attempt_at: new Date(delivery.createdAtMs),
    ended_at: null,
  };
}

function dateOf(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
