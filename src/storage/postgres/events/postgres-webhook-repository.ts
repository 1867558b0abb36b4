import { isDeepStrictEqual } from 'node:util';
import { type RawBuilder, sql } from 'kysely';
import type { ChangeContext } from '../../../audit/change-context.ts';
import { DELIVERY_STATUSES, type Delivery, type NewDelivery } from '../../../events/delivery/delivery.ts';
import type { SealedWebhooks } from '../../../events/rotate-sealed-webhooks.ts';
import { auditedWebhook, type StoredWebhook, type Webhook, webhookTarget } from '../../../events/webhook.ts';
import type {
  DeliveryFilter,
  DeliveryList,
  DeliveryPage,
  WebhookEdit,
  WebhookRepository,
} from '../../../events/webhook-repository.ts';
import { isVisible } from '../../../permissions/visible-records.ts';
import { requireState } from '../../../platform/precondition.ts';
import type { AuditedChanges } from '../audit/audited-changes.ts';
import { countRows } from '../count-rows.ts';
import { isLimitedTo } from '../limited-rows.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { IS_USAGE_AWAITED } from './unsent-usage.ts';
import { changedColumns, deliveryOfRow, rowOfDelivery, sealedColumns, webhookOfRow } from './webhook-rows.ts';

/** Webhooks in Postgres. */
export class PostgresWebhookRepository implements WebhookRepository, SealedWebhooks {
  readonly #db: RecordsDatabase;

  readonly #changes: AuditedChanges;

  constructor(db: RecordsDatabase, changes: AuditedChanges) {
    this.#db = db;
    this.#changes = changes;
  }

  async insert(stored: StoredWebhook, change: ChangeContext): Promise<void> {
    await this.#changes.make(change, async (trx, note) => {
      const { webhook } = stored;
      const row = { id: webhook.id, created_at: new Date(webhook.createdAtMs), ...changedColumns(stored) };
      await trx
        .insertInto('webhooks')
        .values({ ...row, last_event: 0, heard_until: 0 })
        .execute();
      if (webhook.enabled) await listen(trx, webhook);
      note({ action: 'webhook.create', ...auditedWebhook(null, webhook) });
    });
  }

  async list({
    onlyTags,
    limit,
    beforeId,
  }: Parameters<WebhookRepository['list']>[0]): Promise<readonly Webhook[]> {
    let page = this.#db.selectFrom('webhooks').selectAll().orderBy('id', 'desc').limit(limit);
    if (beforeId !== undefined) page = page.where('id', '<', beforeId);
    const rows = await page.where(isLimitedTo(onlyTags)).execute();
    return rows.map((row) => webhookOfRow(row).webhook);
  }

  async after(webhookId: string | undefined, limit: number): Promise<readonly StoredWebhook[]> {
    const page = this.#db.selectFrom('webhooks').selectAll().orderBy('id').limit(limit);
    return (await page.where('id', '>', webhookId ?? '').execute()).map(webhookOfRow);
  }

  async replace({ webhook }: StoredWebhook, { webhook: _same, ...sealed }: StoredWebhook): Promise<void> {
    await this.#db
      .updateTable('webhooks')
      .set(sealedColumns(sealed))
      .where('id', '=', webhook.id)
      .where('version', '=', webhook.version)
      .execute();
  }

  count(onlyTags: readonly string[]): Promise<number> {
    return countRows(this.#db.selectFrom('webhooks').where(isLimitedTo(onlyTags)));
  }

  async find(webhookId: string): Promise<Webhook | undefined> {
    const row = await this.#db
      .selectFrom('webhooks')
      .selectAll()
      .where('id', '=', webhookId)
      .executeTakeFirst();
    return row && webhookOfRow(row).webhook;
  }

  update(
    webhookId: string,
    { action, edit }: WebhookEdit,
    change: ChangeContext,
  ): Promise<Webhook | undefined> {
    return this.#changes.make(change, async (trx, note) => {
      const present = await lockedWebhook(trx, webhookId, change);
      if (present === undefined) return undefined;
      const wanted = edit(present);
      if (isDeepStrictEqual(wanted, present)) return present.webhook;
      const { version, enabled } = present.webhook;
      const webhook = { ...wanted.webhook, updatedAtMs: change.atMs, version: version + 1 };
      await trx
        .updateTable('webhooks')
        .set(changedColumns({ ...wanted, webhook }))
        .where('id', '=', webhookId)
        .execute();
      if (webhook.enabled !== enabled) await listen(trx, webhook);
      else if (enabled) await noteListeners(trx);
      note({ action, ...auditedWebhook(present.webhook, webhook) });
      return webhook;
    });
  }

  delete(webhookId: string, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      const present = await lockedWebhook(trx, webhookId, change);
      if (present === undefined) return false;
      await trx.deleteFrom('webhooks').where('id', '=', webhookId).execute();
      await noteListeners(trx);
      note({ action: 'webhook.delete', ...auditedWebhook(present.webhook, null) });
      return true;
    });
  }

  async deliveries(webhookId: string, page: DeliveryPage): Promise<DeliveryList> {
    const { limit, maxBytes } = page;
    const found = await newestDeliveries(this.#db, webhookId, { ...page, limit: limit + 1 });
    let bytes = 0;
    const ids = found
      .slice(0, limit)
      .filter((row, index) => {
        bytes += row.bytes;
        return index === 0 || bytes <= maxBytes;
      })
      .map(({ id }) => id);
    if (ids.length === 0) return { deliveries: [], hasMore: false };
    const rows = this.#db.selectFrom('webhook_deliveries').selectAll().where('id', 'in', ids);
    const deliveries = (await rows.orderBy('id', 'desc').execute()).map(deliveryOfRow);
    return { deliveries, hasMore: ids.length < found.length };
  }

  countDeliveries(webhookId: string, { types, status, onlyTags }: DeliveryFilter): Promise<number> {
    let found = this.#db
      .selectFrom('webhook_deliveries')
      .where('webhook_id', '=', webhookId)
      .where('event_type', 'in', types);
    if (status !== undefined) found = found.where('status', '=', status);
    // Without tags the index of the list has all that the count reads.
    if (onlyTags.length > 0) found = found.where(sql<boolean>`tags @> ${onlyTags}::text[]`);
    return countRows(found);
  }

  async findDelivery(webhookId: string, deliveryId: string): Promise<Delivery | undefined> {
    const row = await this.#db
      .selectFrom('webhook_deliveries')
      .selectAll()
      .where('id', '=', deliveryId)
      .where('webhook_id', '=', webhookId)
      .executeTakeFirst();
    return row && deliveryOfRow(row);
  }

  addDelivery(delivery: NewDelivery, webhook: Webhook, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      if (!(await keepsPresent(trx, webhook))) return false;
      const row = { ...rowOfDelivery(delivery), next_attempt_at: beforeOthers(delivery, change) };
      await trx.insertInto('webhook_deliveries').values(row).execute();
      const changes = { deliveryId: { from: null, to: delivery.id } };
      note({ action: 'webhook.test', target: webhookTarget(webhook), changes });
      return true;
    });
  }

  resend(delivery: Delivery, webhook: Webhook, change: ChangeContext): Promise<boolean> {
    return this.#changes.make(change, async (trx, note) => {
      if (!(await keepsPresent(trx, webhook))) return false;
      const { numUpdatedRows } = await trx
        .updateTable('webhook_deliveries')
        .set({ status: 'pending', next_attempt_at: beforeOthers(delivery, change), ended_at: null, tries: 0 })
        .where('id', '=', delivery.id)
        // One that is due for the first time is sent already, and its attempt may be under way. One that has failed may wait for its endpoint.
        .where(({ eb, or }) =>
          or([
            eb('status', '!=', 'pending'),
            eb('next_attempt_at', '>', sql<Date>`clock_timestamp()`),
            eb('tries', '>', 0),
          ]),
        )
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return true;
      const changes = { deliveryId: { from: null, to: delivery.id } };
      note({ action: 'webhook.resend', target: webhookTarget(webhook), changes });
      return true;
    });
  }
}

/** Whether the webhook is there. Deliveries have no foreign key: the lock keeps it from being deleted before the transaction ends. */
async function keepsPresent(trx: RecordsDatabase, { id }: Webhook): Promise<boolean> {
  const present = trx.selectFrom('webhooks').select('id').where('id', '=', id).forKeyShare();
  return (await present.executeTakeFirst()) !== undefined;
}

/** An instant by which a delivery is due before all others of its webhook, also where the clock of a replica is ahead. */
function beforeOthers({ webhookId }: NewDelivery, { atMs }: ChangeContext): RawBuilder<Date> {
  return sql<Date>`least(${new Date(atMs)}::timestamptz, clock_timestamp(), (
    SELECT min(next_attempt_at) FROM webhook_deliveries WHERE webhook_id = ${webhookId} AND status = 'pending'
  )) - interval '1 ms'`;
}

/** The newest deliveries of a page without their bodies. Reads the newest of each type and status, however many others there are. */
async function newestDeliveries(
  db: RecordsDatabase,
  webhookId: string,
  { types, status, onlyTags, beforeId, limit }: DeliveryPage,
): Promise<readonly { readonly id: string; readonly bytes: number }[]> {
  const statuses = status === undefined ? DELIVERY_STATUSES : [status];
  const older = beforeId === undefined ? sql`` : sql`AND id < ${beforeId}`;
  const { rows } = await sql<{ id: string; bytes: number }>`
    SELECT newest.* FROM unnest(${types}::text[]) AS type, unnest(${statuses}::text[]) AS state, LATERAL (
      SELECT id, octet_length(body) AS bytes FROM webhook_deliveries
      WHERE webhook_id = ${webhookId} AND event_type = type AND status = state AND tags @> ${onlyTags}::text[] ${older}
      ORDER BY id DESC LIMIT ${limit}) AS newest
    ORDER BY id DESC LIMIT ${limit}`.execute(db);
  return rows;
}

/** A webhook, locked until the transaction ends. Undefined if it does not exist or the change can't see it. */
async function lockedWebhook(
  trx: RecordsDatabase,
  webhookId: string,
  { onlyTags, expects }: ChangeContext,
): Promise<StoredWebhook | undefined> {
  const row = await trx
    .selectFrom('webhooks')
    .selectAll()
    .where('id', '=', webhookId)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined || !isVisible(row.only_tags, onlyTags)) return undefined;
  const stored = webhookOfRow(row);
  requireState(expects, stored.webhook);
  return stored;
}

/**
 * Makes a webhook that was enabled hear all events from the end of the outbox on, and one that was disabled those up to it. The lock of the
 * end is held until the commit: no event of another transaction is missed, and none is written before this one is committed.
 */
export async function listen(trx: RecordsDatabase, { id, enabled }: Webhook): Promise<void> {
  const { last_event: end } = await lockedEnd(trx);
  // Events from before it was disabled may be left to consider: it hears those from meanwhile as well then, rather than miss any.
  const from = sql<number>`CASE WHEN last_event < heard_until THEN last_event ELSE ${end} END`;
  await trx
    .updateTable('webhooks')
    .set(enabled ? { last_event: from, heard_until: null } : { heard_until: end })
    .where('id', '=', id)
    .execute();
  await noteListeners(trx);
}

/** Notes whether any webhook is enabled, and whether usage is kept for one: without one no events are written. */
export async function noteListeners(trx: RecordsDatabase): Promise<void> {
  // The lock first: the statement after it sees the webhooks of all transactions that held it before.
  await lockedEnd(trx);
  await trx
    .updateTable('audit_log_ends')
    .set(({ exists, selectFrom }) => ({
      has_webhooks: sql<boolean>`${exists(selectFrom('webhooks').select('id').where('enabled', '=', true))}`,
      hears_usage: IS_USAGE_AWAITED,
    }))
    .execute();
}

/** The end of the outbox, locked until the transaction ends. */
export function lockedEnd(trx: RecordsDatabase) {
  return trx.selectFrom('audit_log_ends').select('last_event').forUpdate().executeTakeFirstOrThrow();
}
