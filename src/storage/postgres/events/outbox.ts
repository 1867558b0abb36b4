import { type RawBuilder, sql } from 'kysely';
import type { Outbox } from '../../../events/degradation-events.ts';
import type { EventType } from '../../../events/event-types.ts';
import type { OutboxEvent } from '../../../events/outbox-event.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { insertRows } from '../write-rows.ts';

/** Whether a webhook or a stream hears anything: a condition on `audit_log_ends`. */
export const IS_HEARD = sql<boolean>`(has_webhooks OR coalesce(streamed_until > now(), false))`;

const IS_ENABLED = sql<boolean>`enabled`;

/** Whether an enabled webhook, or one of others, hears events of a type: a condition. */
export function isHeardByWebhook(type: EventType, among = IS_ENABLED): RawBuilder<boolean> {
  return sql<boolean>`EXISTS (
    SELECT FROM webhooks, unnest(events) AS pattern WHERE ${among} AND ${selects(sql`${type}`)})`;
}

/** Whether `pattern`, a type or the beginning of types with `*` at its end, selects a type: a condition. */
export function selects(type: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql<boolean>`(pattern = ${type} OR (right(pattern, 1) = '*' AND starts_with(${type}, left(pattern, -1))))`;
}

/** The outbox in Postgres, for events that stand alone. */
export class PostgresOutbox implements Outbox {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  append(events: readonly OutboxEvent[]): Promise<void> {
    return this.#db.transaction().execute((trx) => appendEvents(trx, events));
  }

  appendMissing(events: readonly OutboxEvent[]): Promise<void> {
    return this.#db.transaction().execute(async (trx) => appendEvents(trx, await missingOf(trx, events)));
  }
}

/** An event may have been written although its write failed: it is looked for among this many of the last events. */
const LOOKED_BACK = 100_000;

/** The events that are not written, none if nothing is heard. Keeps the lock under which the transaction that failed is over, one way or the other. */
export async function missingOf<Event extends Pick<OutboxEvent, 'id'>>(
  trx: RecordsDatabase,
  events: readonly Event[],
): Promise<readonly Event[]> {
  const end = await heardEnd(trx);
  if (end === undefined || events.length === 0) return [];
  const written = await trx
    .selectFrom('events')
    .select('id')
    .where('sequence', '>', end.last_event - LOOKED_BACK)
    .where(
      'id',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
  const ids = new Set(written.map(({ id }) => id));
  return events.filter(({ id }) => !ids.has(id));
}

/** Undefined if nothing is heard. Nothing is locked then: a replica that stops here would keep all others from changes. */
function heardEnd(trx: RecordsDatabase) {
  return trx.selectFrom('audit_log_ends').select('last_event').where(IS_HEARD).forUpdate().executeTakeFirst();
}

/** Writes events into the outbox, numbered from `lastEvent` on. The transaction must hold the lock of `audit_log_ends`. */
export async function insertEvents(
  trx: RecordsDatabase,
  lastEvent: number,
  events: readonly OutboxEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ id, type, subject, atMs, tags, data }, index) => ({
    ...{ sequence: lastEvent + index + 1, id, type, subject, at: new Date(atMs), tags, data },
  }));
  await insertRows(trx, 'events', rows);
}

/**
 * Writes events that no audited change makes, if any are heard. Must be the last statement of its transaction: until the commit, no other
 * transaction makes events.
 */
export async function appendEvents(trx: RecordsDatabase, events: readonly OutboxEvent[]): Promise<void> {
  if (events.length === 0) return;
  const end = await heardEnd(trx);
  if (end === undefined) return;
  await insertEvents(trx, end.last_event, events);
  await trx
    .updateTable('audit_log_ends')
    .set({ last_event: end.last_event + events.length })
    .execute();
}
