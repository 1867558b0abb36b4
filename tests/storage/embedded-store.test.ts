import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { StartFault } from '../../src/platform/process/start-fault.ts';
import { openEmbeddedRecords } from '../../src/storage/embedded/open-embedded-records.ts';
import { createEmbeddedRecords, MIGRATIONS, type TestRecords } from '../support/records.ts';
import { scratchFolder } from '../support/scratch-folder.ts';

const MIB = 2 ** 20;

describe('the embedded store', () => {
  let store: TestRecords;

  beforeEach(async () => {
    store = await createEmbeddedRecords();
  });
  afterEach(() => store.remove());

  async function numberIn(query: ReturnType<typeof sql<{ value: number }>>): Promise<number> {
    const { rows } = await query.execute(store.records.db);
    return rows[0]?.value ?? Number.NaN;
  }

  /** Writes to the write-ahead log, and nothing else. */
  async function write(mebibytes: number): Promise<void> {
    for (let quarters = 0; quarters < 4 * mebibytes; quarters += 1)
      await sql`SELECT pg_logical_emit_message(false, 'test', repeat('x', ${MIB / 4}))`.execute(
        store.records.db,
      );
  }

  it('lets other work of the process go on between any two queries and transactions', async () => {
    const { db } = store.records;
    await sql`SELECT 1`.execute(db);
    for (const work of [
      () => sql`SELECT 1`.execute(db),
      () => db.transaction().execute((transaction) => sql`SELECT 1`.execute(transaction)),
    ]) {
      let hadTurn = false;
      setImmediate(() => {
        hadTurn = true;
      });
      await work();
      await work();
      expect(hadTurn).toBe(true);
    }
  });

  it('keeps the write-ahead log short, and makes the room of deleted rows free for others', async () => {
    const { db } = store.records;
    const fill = (rows: number) =>
      sql`INSERT INTO rows_of_test SELECT repeat('x', 100) FROM generate_series(1, ${rows}::int)`.execute(db);
    const size = () => numberIn(sql`SELECT pg_relation_size('rows_of_test')::float8 AS value`);
    await sql`CREATE TABLE rows_of_test (text text)`.execute(db);
    await fill(20_000);
    const before = await size();
    // The first 100 of 328 pages: a vacuum would cut off an empty end.
    await sql`DELETE FROM rows_of_test WHERE ctid < '(100,0)'`.execute(db);
    // Beyond what makes a vacuum due, so that all tables have had theirs: each waits for a query, and a query for it.
    await write(360);
    await fill(6000);
    expect(await size()).toBe(before);
    const kept = await numberIn(sql`SELECT sum(size)::float8 AS value FROM pg_ls_waldir()`);
    expect(kept).toBeLessThan(200 * MIB);
    const replayed = await numberIn(sql`
      SELECT (pg_current_wal_lsn() - redo_lsn)::float8 AS value FROM pg_control_checkpoint()`);
    expect(replayed).toBeLessThan(100 * MIB);
  });
});

it('an embedded store that can not be opened is named, with what to do', async () => {
  const directory = await mkdtemp(join(await scratchFolder(), 'tollgate-partial-'));
  try {
    await writeFile(join(directory, 'PG_VERSION'), '18\n');
    const opening = openEmbeddedRecords({
      ...{ directory, migrationsDirectory: MIGRATIONS, defaultPlanId: null, chainSecrets: null },
      onUpkeepFailure: () => {},
    });
    await expect(opening).rejects.toBeInstanceOf(StartFault);
    await expect(opening).rejects.toThrow(
      /^The embedded database in .* can not be opened \(.+\): check .* a backup\./,
    );
  } finally {
    await rm(directory, { recursive: true });
  }
});
