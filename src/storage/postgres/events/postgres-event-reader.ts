import { sql } from 'kysely';
import type { EventReader, Followed, NumberedEvent } from '../../../events/stream/event-streams.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** The outbox in Postgres, for streams. */
export class PostgresEventReader implements EventReader {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async follow(hearsUsage: boolean): Promise<Followed> {
    const column = hearsUsage ? 'usage_streamed_until' : 'streamed_until';
    const isDue = sql<boolean>`coalesce(${sql.ref(column)} < now() + interval '7 days', true)`;
    // Most streams find it noted. A write would wait for the audited changes that are under way, and hold up the next ones.
    const { last_event, is_due } = await this.#db
      .selectFrom('audit_log_ends')
      .select(['last_event', isDue.as('is_due')])
      .executeTakeFirstOrThrow();
    if (!is_due) return { lastEvent: last_event, isNoted: false };
    const until = sql<Date>`now() + interval '7 days 1 minute'`;
    const noted = await this.#db
      .updateTable('audit_log_ends')
      .set({ streamed_until: until, ...(hearsUsage && { usage_streamed_until: until }) })
      .where(isDue)
      .returning('last_event')
      .executeTakeFirst();
    return { lastEvent: noted?.last_event ?? last_event, isNoted: noted !== undefined };
  }

  async after(sequence: number, limit: number): Promise<readonly NumberedEvent[]> {
    const rows = await this.#db
      .selectFrom('events')
      .selectAll()
      .where('sequence', '>', sequence)
      .orderBy('sequence')
      .limit(limit)
      .execute();
    return rows.map(({ at, ...row }) => ({ ...row, atMs: at.getTime() }));
  }
}
