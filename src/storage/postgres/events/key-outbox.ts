import { sql } from 'kysely';
import type { EventType } from '../../../events/event-types.ts';
import type { KeyEvent, KeyOutbox } from '../../../events/threshold-events.ts';
import type { RecordsDatabase } from '../records-database.ts';
import { appendEvents, isHeardByWebhook, missingOf } from './outbox.ts';

/** The outbox in Postgres, for events about keys. */
export class PostgresKeyOutbox implements KeyOutbox {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async append(type: EventType, events: readonly KeyEvent[]): Promise<void> {
    // Most gateways have no such webhook: then the lock that puts all changes in order is not taken.
    if (!(await this.#isHeard(type))) return;
    await this.#db.transaction().execute((trx) => appendTagged(trx, events));
  }

  async appendMissing(type: EventType, events: readonly KeyEvent[]): Promise<void> {
    if (!(await this.#isHeard(type))) return;
    await this.#db.transaction().execute(async (trx) => appendTagged(trx, await missingOf(trx, events)));
  }

  async #isHeard(type: EventType): Promise<boolean> {
    const { is_heard } = await this.#db
      .selectFrom('audit_log_ends')
      .select(
        sql<boolean>`${isHeardByWebhook(type)} OR coalesce(streamed_until > now(), false)`.as('is_heard'),
      )
      .executeTakeFirstOrThrow();
    return is_heard;
  }
}

/** A key that was deleted meanwhile has no tags, so that nothing hears of it that hears only some tags. */
async function appendTagged(trx: RecordsDatabase, events: readonly KeyEvent[]): Promise<void> {
  if (events.length === 0) return;
  const keyIds = [...new Set(events.map(({ subject }) => subject))];
  const keys = await trx
    .selectFrom('consumer_keys')
    .select(['id', 'tags'])
    .where('id', 'in', keyIds)
    .execute();
  const tagsOf = new Map(keys.map(({ id, tags }) => [id, tags]));
  await appendEvents(
    trx,
    events.map((event) => ({ ...event, tags: tagsOf.get(event.subject) ?? [] })),
  );
}
