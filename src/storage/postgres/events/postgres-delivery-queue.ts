import { type RawBuilder, sql } from 'kysely';
import {
  type AttemptResult,
  type Backlog,
  type Delivery,
  type DeliveryQueue,
  type DeliveryRetention,
  KEPT_ATTEMPTS,
  MOST_COUNTED,
  type NewDelivery,
} from '../../../events/delivery/delivery.ts';
import type { OutboxEvent } from '../../../events/outbox-event.ts';
import type { StoredWebhook, Webhook } from '../../../events/webhook.ts';
import { deleteInParts } from '../delete-in-parts.ts';
import { earlierNowMs } from '../earlier-now.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { runEach } from '../run-each.ts';
import { deliveryOfRow, rowOfDelivery, webhookOfRow } from './webhook-rows.ts';

const LEASE = 'webhooks';
/** Events that are considered in one transaction: their data is in memory. */
const EVENTS_AT_ONCE = 500;
/** Rows that are removed in one statement. */
const REMOVED_AT_ONCE = 5000;
/** The same of deliveries: the body of each may have some megabytes. */
const DELIVERIES_AT_ONCE = 200;
/** Whether a webhook is enabled, or has not considered all that happened before it was disabled. */
const IS_SERVED = sql<boolean>`(enabled OR last_event < heard_until)`;

/** The deliveries in Postgres. */
export class PostgresDeliveryQueue implements DeliveryQueue {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async hold(holder: string, ttlMs: number): Promise<number | undefined> {
    // By the clock of the database: those of replicas may differ.
    const { rows } = await sql<{ now: Date }>`
      INSERT INTO leases (name, holder, held_until)
      VALUES (${LEASE}, ${holder}, clock_timestamp() + ${ttlMs} * interval '1 ms')
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
      WHERE leases.holder = excluded.holder OR leases.held_until < clock_timestamp()
      RETURNING clock_timestamp() AS now`.execute(this.#db);
    return rows[0]?.now.getTime();
  }

  async release(holder: string): Promise<void> {
    await this.#db.deleteFrom('leases').where('name', '=', LEASE).where('holder', '=', holder).execute();
  }

  async served(afterId: string | undefined, limit: number): Promise<readonly StoredWebhook[]> {
    const rows = await this.#db
      .selectFrom('webhooks')
      .selectAll()
      .where(IS_SERVED)
      .where('id', '>', afterId ?? '')
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map(webhookOfRow);
  }

  fanOut(
    webhookId: string,
    make: (webhook: Webhook, events: readonly OutboxEvent[]) => readonly NewDelivery[],
  ): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      // Read under its lock: a subscription that became wider counts for all events after that.
      const row = await trx
        .selectFrom('webhooks')
        .selectAll()
        .where('id', '=', webhookId)
        .where(IS_SERVED)
        .forNoKeyUpdate()
        .skipLocked()
        .executeTakeFirst();
      if (row === undefined) return false;
      const { last_event, heard_until } = row;
      let page = trx.selectFrom('events').selectAll().where('sequence', '>', last_event);
      if (heard_until !== null) page = page.where('sequence', '<=', heard_until);
      const rows = await page.orderBy('sequence').limit(EVENTS_AT_ONCE).execute();
      const last = rows.at(-1);
      if (last === undefined) return false;
      const events = rows.map(({ at, ...event }) => ({ ...event, atMs: at.getTime() }));
      const deliveries = make(webhookOfRow(row).webhook, events);
      if (deliveries.length > 0)
        await trx.insertInto('webhook_deliveries').values(deliveries.map(rowOfDelivery)).execute();
      await trx
        .updateTable('webhooks')
        .set({ last_event: last.sequence })
        .where('id', '=', webhookId)
        .execute();
      return true;
    });
  }

  async due(
    { id, version }: Pick<Webhook, 'id' | 'version'>,
    { holder, nowMs, except, limit }: Parameters<DeliveryQueue['due']>[1],
  ): Promise<readonly Delivery[]> {
    const rows = await this.#db
      .selectFrom('webhook_deliveries')
      .selectAll()
      .where('webhook_id', '=', id)
      .where('status', '=', 'pending')
      .where('next_attempt_at', '<=', new Date(nowMs))
      .where(sql<boolean>`id <> ALL (${[...except]}::text[])`)
      .where(sql<boolean>`EXISTS (SELECT FROM webhooks WHERE id = ${id} AND version = ${version})`)
      .where(sql<boolean>`EXISTS (
        SELECT FROM leases WHERE name = ${LEASE} AND holder = ${holder} AND held_until >= clock_timestamp())`)
      .orderBy('next_attempt_at')
      .limit(limit)
      .execute();
    return rows.map(deliveryOfRow);
  }

  async note(
    { id, tries, attempts }: Delivery,
    { attempt, atMs, status, nextAttemptAtMs }: AttemptResult,
  ): Promise<void> {
    const endedAt = status === 'pending' ? null : new Date(atMs + attempt.durationMs);
    const tried = [...attempts, attempt].slice(-KEPT_ATTEMPTS);
    await this.#db
      .updateTable('webhook_deliveries')
      .set({
        status,
        next_attempt_at: nextAttemptAtMs === null ? null : new Date(nextAttemptAtMs),
        ended_at: endedAt,
        tries: tries + 1,
        attempts: JSON.stringify(tried),
      })
      .where('id', '=', id)
      .where('status', '=', 'pending')
      .where('tries', '=', tries)
      .execute();
  }

  async cancel({ id, webhookId, tries }: Delivery, webhookVersion: number, atMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#db
      .updateTable('webhook_deliveries')
      .set({ status: 'cancelled', next_attempt_at: null, ended_at: new Date(atMs), tries: tries + 1 })
      .where('id', '=', id)
      .where('status', '=', 'pending')
      .where('tries', '=', tries)
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('webhooks')
            .select('id')
            .where('id', '=', webhookId)
            .where('version', '=', webhookVersion),
        ),
      )
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async noteHealth(webhookId: string, hasFailed: boolean, atMs: number): Promise<number | null> {
    const change = this.#db.updateTable('webhooks').where('id', '=', webhookId);
    if (!hasFailed) {
      // Most attempts succeed, at endpoints that are healthy already: no row is written for them.
      await change.set({ failing_since: null }).where('failing_since', 'is not', null).execute();
      return null;
    }
    // Nor for a further one that fails, of which a receiver that is away may have millions.
    const present = await this.#db
      .selectFrom('webhooks')
      .select('failing_since')
      .where('id', '=', webhookId)
      .executeTakeFirst();
    if (present?.failing_since) return present.failing_since.getTime();
    const row = await change
      .set({ failing_since: sql<Date>`coalesce(failing_since, ${new Date(atMs)})` })
      .returning('failing_since')
      .executeTakeFirst();
    return row?.failing_since?.getTime() ?? null;
  }

  async backlog(): Promise<Backlog> {
    const { rows } = await sql<{ pending: number; oldest: Date | null; disabled: number }>`
      SELECT count(*) AS pending, min(created_at) AS oldest,
        (SELECT count(*) FROM webhooks WHERE disabled_reason IS NOT NULL) AS disabled
      FROM (
        SELECT waiting.created_at FROM webhooks, LATERAL (
          SELECT created_at FROM webhook_deliveries
          WHERE webhook_id = webhooks.id AND status = 'pending'
          LIMIT ${MOST_COUNTED}) AS waiting
        WHERE enabled
        LIMIT ${MOST_COUNTED}) AS pending`.execute(this.#db);
    const { pending = 0, oldest = null, disabled = 0 } = rows[0] ?? {};
    return { pending: Number(pending), oldestAtMs: oldest?.getTime() ?? null, disabled: Number(disabled) };
  }

  async trim(retention: DeliveryRetention, goesOn: () => boolean, stopping: AbortSignal): Promise<boolean> {
    const nowMs = await earlierNowMs(this.#db, retention.nowMs);
    let hasMore = false;
    const kinds = removable({ ...retention, nowMs }).map(
      (rows) => () => deleteInParts(this.#db, rows, goesOn),
    );
    await runEach(
      [...kinds, () => this.#removeOfDeleted(goesOn)].map((step) => async () => {
        if (stopping.aborted || (await step())) hasMore = true;
      }),
    );
    return hasMore;
  }

  async #removeOfDeleted(goesOn: () => boolean): Promise<boolean> {
    for (const webhookId of await this.#deletedWebhooks()) {
      const rows = sql`webhook_deliveries WHERE id IN (
        SELECT id FROM webhook_deliveries WHERE webhook_id = ${webhookId} LIMIT ${DELIVERIES_AT_ONCE})`;
      const hasMore = await deleteInParts(this.#db, rows, goesOn);
      if (hasMore || !goesOn()) return true;
    }
    return false;
  }

  /** The webhooks that have deliveries but do not exist any more. Reads one entry of the index for each webhook. */
  async #deletedWebhooks(): Promise<readonly string[]> {
    const { rows } = await sql<{ id: string }>`
      WITH RECURSIVE served AS (
        SELECT min(webhook_id) AS id FROM webhook_deliveries
        UNION ALL
        SELECT (SELECT min(webhook_id) FROM webhook_deliveries WHERE webhook_id > served.id) FROM served WHERE id IS NOT NULL
      )
      SELECT id FROM served WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM webhooks WHERE webhooks.id = served.id)`.execute(
      this.#db,
    );
    return rows.map(({ id }) => id);
  }
}

/** The kinds of rows that are removed, a part of each. */
function removable({
  nowMs,
  succeededKeptMs,
  failedKeptMs,
  eventsKeptMs,
}: DeliveryRetention): readonly RawBuilder<unknown>[] {
  return [
    sql`webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE status = 'succeeded' AND ended_at < ${new Date(nowMs - succeededKeptMs)}
      LIMIT ${DELIVERIES_AT_ONCE})`,
    sql`webhook_deliveries WHERE id IN (
      SELECT id FROM webhook_deliveries
      WHERE status IN ('failed', 'cancelled') AND ended_at < ${new Date(nowMs - failedKeptMs)}
      LIMIT ${DELIVERIES_AT_ONCE})`,
    sql`webhook_deliveries WHERE id IN (
      SELECT webhook_deliveries.id FROM webhooks JOIN webhook_deliveries ON webhook_id = webhooks.id
      WHERE NOT enabled AND status = 'pending' AND next_attempt_at < ${new Date(nowMs - failedKeptMs)}
      LIMIT ${DELIVERIES_AT_ONCE})`,
    // Looks at the oldest ones only: there is no index of the instants, and there may be millions of newer events.
    sql`events WHERE sequence IN (
      SELECT sequence FROM (
        SELECT sequence, at FROM events
        WHERE sequence <= coalesce((SELECT min(last_event) FROM webhooks WHERE ${IS_SERVED}), 9223372036854775807)
        ORDER BY sequence LIMIT ${REMOVED_AT_ONCE}) AS oldest
      WHERE at < ${new Date(nowMs - eventsKeptMs)})`,
    // Usage of a key is moved long before.
    sql`deleted_keys WHERE id IN (
      SELECT id FROM deleted_keys WHERE deleted_at < now() - interval '35 days' LIMIT ${REMOVED_AT_ONCE})`,
  ];
}
