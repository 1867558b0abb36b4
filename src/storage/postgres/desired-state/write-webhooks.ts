import type { StateChanges } from '../../../desired-state/desired-state-store.ts';
import { auditedWebhook, type Webhook } from '../../../events/webhook.ts';
import type { NoteAction } from '../audit/audited-changes.ts';
import { listen, noteListeners } from '../events/postgres-webhook-repository.ts';
import { changedColumns } from '../events/webhook-rows.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** Writes the webhooks of a configuration, of which there are few. The end of the outbox is locked last. */
export async function writeWebhooks(
  trx: RecordsDatabase,
  { newWebhooks, changedWebhooks, deletedWebhooks }: StateChanges,
  atMs: number,
): Promise<void> {
  const ids = deletedWebhooks.map(({ id }) => id);
  if (ids.length > 0) await trx.deleteFrom('webhooks').where('id', 'in', ids).execute();
  for (const { wanted, managedDigest } of changedWebhooks)
    await trx
      .updateTable('webhooks')
      .set({
        ...configuredColumns(wanted),
        ...{ managed_digest: managedDigest, updated_at: new Date(atMs), version: wanted.version + 1 },
      })
      .where('id', '=', wanted.id)
      .execute();
  for (const { stored, managedDigest } of newWebhooks)
    await trx
      .insertInto('webhooks')
      .values({
        ...{ id: stored.webhook.id, created_at: new Date(atMs), last_event: 0, heard_until: 0 },
        ...{ ...changedColumns(stored), managed_digest: managedDigest },
      })
      .execute();
  const switched = [
    ...newWebhooks.flatMap(({ stored: { webhook } }) => (webhook.enabled ? webhook : [])),
    ...changedWebhooks.flatMap(({ before, wanted }) => (before.enabled === wanted.enabled ? [] : wanted)),
  ];
  for (const webhook of switched) await listen(trx, webhook);
  if (ids.length > 0 || changedWebhooks.length > 0) await noteListeners(trx);
}

/** The columns that a configuration changes: neither secrets nor headers. */
function configuredColumns(webhook: Webhook) {
  const { url, events, onlyTags, description, enabled, batch, managedBy, disabledReason } = webhook;
  return {
    ...{ url, events, description, enabled, batch },
    only_tags: onlyTags,
    managed_by: managedBy,
    disabled_reason: disabledReason,
    ...(webhook.failingSinceMs === null && { failing_since: null }),
  };
}

/** In the order in which the changes are written. */
export function noteWebhookActions(
  { newWebhooks, changedWebhooks, deletedWebhooks }: StateChanges,
  note: NoteAction,
): void {
  for (const webhook of deletedWebhooks) note({ action: 'webhook.delete', ...auditedWebhook(webhook, null) });
  for (const { before, wanted } of changedWebhooks)
    note({ action: 'webhook.update', ...auditedWebhook(before, wanted) });
  for (const { stored } of newWebhooks)
    note({ action: 'webhook.create', ...auditedWebhook(null, stored.webhook) });
}
