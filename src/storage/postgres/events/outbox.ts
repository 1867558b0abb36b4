import type { OutboxEvent } from '../../../events/outbox-event.ts';
import type { RecordsDatabase } from '../records-database.ts';

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
  await trx.insertInto('events').values(rows).execute();
}
