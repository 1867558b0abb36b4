import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { createEmbeddedRecords, type TestRecords } from '../support/records.ts';

describe('the embedded store', () => {
  let store: TestRecords;

  beforeEach(async () => {
    store = await createEmbeddedRecords();
  });
  afterEach(() => store.remove());

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
});
