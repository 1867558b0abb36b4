import { sql } from 'kysely';
import type { EventReader, NumberedEvent } from '../../../events/stream/event-streams.ts';
import type { RecordsDatabase } from '../records-database.ts';

/** The outbox in Postgres, for streams. */
export class PostgresEventReader implements EventReader {
  readonly #db: RecordsDatabase;

  constructor(db: RecordsDatabase) {
    this.#db = db;
  }

  async follow(hearsUsage: boolean): Promise<number> {
    const until = sql<Date>`now() + interval '7 days'`;
    const { last_event } = await this.#db
      .updateTable('audit_log_ends')
      .set({ streamed_until: until, ...(hearsUsage && { usage_streamed_until: until }) })
      .returning('last_event')
      .executeTakeFirstOrThrow();
    return last_event;
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
