import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { StoreUnavailable } from '../../src/errors.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';

describe.each(RECORD_STORES)('the record store in %s, when it is not prepared', (_name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  it.each([
    ['table', 'select 1 from not_yet'],
    ['column', 'select not_yet from plans'],
    ['schema', 'create table not_yet.plans ()'],
  ])('is unavailable for a query that needs a missing %s, and serves the next', async (_what, text) => {
    const { db } = store.records;
    const query = sql.raw(text);
    await expect(query.execute(db)).rejects.toThrow(StoreUnavailable);
    await expect(db.transaction().execute((trx) => query.execute(trx))).rejects.toThrow(StoreUnavailable);
    await store.records.ping();
  });

  it('leaves an error that is not an outage as it is', async () => {
    const { db } = store.records;
    await expect(sql`select 1 / 0`.execute(db)).rejects.toThrow('division by zero');
    await expect(db.transaction().execute((trx) => sql`select 1 / 0`.execute(trx))).rejects.toThrow(
      'division by zero',
    );
  });
});
