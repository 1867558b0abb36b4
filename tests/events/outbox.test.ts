import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { PostgresOutbox } from '../../src/storage/postgres/events/outbox.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';

const EVENT = {
  ...{ id: 'evt', type: 'tollgate.gateway.degraded', subject: 'a-replica', atMs: Date.UTC(2026, 1, 3) },
  ...{ tags: [], data: '{}' },
} as const;

let store: TestRecords;
beforeAll(async () => {
  store = await createPostgresRecords();
});
afterAll(() => store.remove());

async function written(): Promise<number> {
  const { rows } = await sql<{ total: number }>`SELECT count(*) AS total FROM events`.execute(
    store.records.db,
  );
  return rows[0]?.total ?? Number.NaN;
}

describe('an event that stands alone', () => {
  it('waits for no change that is under way while nothing hears events', async () => {
    const { db } = store.records;
    const outbox = new PostgresOutbox(db);
    await db.transaction().execute(async (trx) => {
      await sql`SELECT FROM audit_log_ends FOR UPDATE`.execute(trx);
      // With the lock it would wait for this transaction, which waits for it.
      await outbox.append([EVENT]);
    });
    expect(await written()).toBe(0);
  });

  it('is written once something hears events', async () => {
    await sql`UPDATE audit_log_ends SET streamed_until = now() + interval '1 hour'`.execute(store.records.db);
    await new PostgresOutbox(store.records.db).append([EVENT]);
    expect(await written()).toBe(1);
  });

  it('is not written again where it was written although the reply was lost', async () => {
    const before = await written();
    const outbox = new PostgresOutbox(store.records.db);
    const events = [
      { ...EVENT, id: 'first' },
      { ...EVENT, id: 'second' },
    ];
    await outbox.append(events.slice(0, 1));
    for (let attempt = 0; attempt < 2; attempt += 1) await outbox.appendMissing(events);
    expect(await written()).toBe(before + 2);
  });
});
