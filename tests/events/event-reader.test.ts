import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import type { EventFilter } from '../../src/events/stream/event-streams.ts';
import { PostgresEventReader } from '../../src/storage/postgres/events/postgres-event-reader.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';

const ALL: EventFilter = { events: ['tollgate.*'], subject: undefined };

let store: TestRecords;
let reader: PostgresEventReader;
beforeAll(async () => {
  store = await createPostgresRecords();
  reader = new PostgresEventReader(store.records.db);
});
afterAll(() => store.remove());
beforeEach(() => sql`TRUNCATE events`.execute(store.records.db));

/** Writes events of usage with these numbers, each about the subject `of ` and its number. */
async function write(first: number, last: number, type = 'tollgate.usage.hour'): Promise<void> {
  await sql`
    INSERT INTO events (sequence, id, type, subject, at, tags, data)
    SELECT number, 'id ' || number, ${type}, 'of ' || number, now(), '{}', '{}' FROM generate_series(${first}::int, ${last}::int) AS number`.execute(
    store.records.db,
  );
}

/** All events after one of them, with the pages that it took. */
async function readAll(sequence: number, filter: EventFilter) {
  const read: number[] = [];
  for (let [position, pages] = [sequence, 1]; ; pages += 1) {
    const page = await reader.after(position, filter);
    read.push(...page.events.map((event) => event.sequence));
    position = page.position;
    if (page.isEnd) return { read, position, pages };
  }
}

describe('the events after one of them', () => {
  it('are none where there are none, and the position stays', async () => {
    expect(await reader.after(0, ALL)).toEqual({ events: [], position: 0, isEnd: true });
    expect(await reader.after(70, ALL)).toEqual({ events: [], position: 70, isEnd: true });
    await write(1, 3);
    expect(await reader.after(3, ALL)).toEqual({ events: [], position: 3, isEnd: true });
    expect(await reader.after(70, ALL)).toEqual({ events: [], position: 70, isEnd: true });
  });

  it('are read in pages of a hundred, each once and in order', async () => {
    await write(1, 250);
    const { read, position, pages } = await readAll(30, ALL);
    expect(read).toEqual(Array.from({ length: 220 }, (_, index) => 31 + index));
    expect([position, pages]).toEqual([250, 3]);
  });

  it('begin with the oldest that is left, at once', async () => {
    await write(1_000_001, 1_000_002);
    expect(await readAll(5, ALL)).toEqual({ read: [1_000_001, 1_000_002], position: 1_000_002, pages: 1 });
  });

  it.each([
    ['types', { events: ['tollgate.plan.created'], subject: undefined }, [6001]],
    ['beginnings of types', { events: ['tollgate.k*', 'tollgate.plan.*'], subject: undefined }, [6001]],
    ['a subject', { ...ALL, subject: 'of 7' }, [7]],
    ['nothing', { events: [], subject: undefined }, []],
    ['a subject as text', { ...ALL, subject: "of 7' OR '1'='1" }, []],
  ])('are selected by %s where they are, in a few pages', async (_what, filter, expected) => {
    await write(1, 6000);
    await write(6001, 6001, 'tollgate.plan.created');
    expect(await readAll(0, filter)).toEqual({ read: expected, position: 6001, pages: 2 });
  });
});

describe('following', () => {
  it('is noted once for events, once for usage, and not again within a minute', async () => {
    await sql`UPDATE audit_log_ends SET streamed_until = NULL, usage_streamed_until = NULL`.execute(
      store.records.db,
    );
    const noted = async (hearsUsage: boolean) => (await reader.follow(hearsUsage)).isNoted;
    expect([await noted(false), await noted(false)]).toEqual([true, false]);
    expect([await noted(true), await noted(true), await noted(false)]).toEqual([true, false, false]);
    await sql`UPDATE audit_log_ends SET streamed_until = streamed_until - interval '61 s'`.execute(
      store.records.db,
    );
    expect([await noted(false), await noted(true)]).toEqual([true, false]);
  });
});
