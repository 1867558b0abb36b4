import type { EventFilter, NumberedEvent } from '../../../src/events/stream/event-streams.ts';
import { PostgresEventReader } from '../../../src/storage/postgres/events/postgres-event-reader.ts';
import type { RecordsDatabase } from '../../../src/storage/postgres/records-database.ts';

const ALL: EventFilter = { events: ['*'], subject: undefined };

/** All events in the outbox after one of them, oldest first, as a stream reads them. */
export async function eventsAfter(
  db: RecordsDatabase,
  sequence: number,
  filter = ALL,
): Promise<readonly NumberedEvent[]> {
  const reader = new PostgresEventReader(db);
  const events: NumberedEvent[] = [];
  let page = await reader.after(sequence, filter);
  for (; !page.isEnd; page = await reader.after(page.position, filter)) events.push(...page.events);
  return [...events, ...page.events];
}
