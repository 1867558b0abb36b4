import { type Selectable, sql } from 'kysely';
import type {
  EventFilter,
  EventPage,
  EventReader,
  Followed,
  NumberedEvent,
} from '../../../events/stream/event-streams.ts';
import type { RecordsDatabase } from '../records-database.ts';
import type { EventsTable } from './events-tables.ts';
import { selects } from './outbox.ts';

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

  async after(sequence: number, { events: patterns, subject }: EventFilter): Promise<EventPage> {
    const ofSubject = subject === undefined ? sql`` : sql`AND subject = ${subject}`;
    // One statement, so that no event is passed over that was committed between two. The first events were perhaps removed for their age.
    const { rows } = await sql<PageRow>`
      WITH ends AS (SELECT min(sequence) - 1 AS oldest, max(sequence) AS newest FROM events),
      span AS (
        SELECT greatest(${sequence}, least(greatest(${sequence}, oldest) + ${CONSIDERED_AT_ONCE}, coalesce(newest, ${sequence}))) AS until, newest
        FROM ends)
      SELECT until, until >= coalesce(newest, 0) AS is_end, page.* FROM span LEFT JOIN LATERAL (
        SELECT * FROM events
        WHERE sequence > ${sequence} AND sequence <= until ${ofSubject}
          AND EXISTS (SELECT FROM unnest(${patterns}::text[]) AS pattern WHERE ${selects(sql`type`)})
        ORDER BY sequence LIMIT ${EVENTS_AT_ONCE}) AS page ON true
      ORDER BY sequence`.execute(this.#db);
    const events = rows.filter((row) => row.sequence !== null).map(eventOf);
    const { until: position = sequence, is_end: isEnd = true } = rows[0] ?? {};
    const last = events.length === EVENTS_AT_ONCE ? events.at(-1) : undefined;
    return last === undefined
      ? { events, position, isEnd }
      : { events, position: last.sequence, isEnd: false };
  }
}

/** Events of a page: their data is in memory. */
const EVENTS_AT_ONCE = 100;
/** Events that are looked at for a page, most of which a stream may not want. */
const CONSIDERED_AT_ONCE = 5000;

interface PageSpan {
  readonly until: number;
  readonly is_end: boolean;
}

/** A row of a page, or the one row of a page without events. */
type PageRow = PageSpan & (EventRow | { readonly sequence: null });
type EventRow = Selectable<EventsTable>;

function eventOf({ sequence, id, type, subject, at, tags, data }: EventRow): NumberedEvent {
  return { sequence, id, type, subject, atMs: at.getTime(), tags, data };
}
