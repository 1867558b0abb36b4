import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { PostgresUsageHistory } from '../../src/storage/postgres/postgres-usage-history.ts';
import type { UsageBatch } from '../../src/usage/live-usage.ts';
import type { UsageHistory } from '../../src/usage/usage-history.ts';
import { OTHER } from '../../src/usage/usage-names.ts';
import type { UsageSums } from '../../src/usage/usage-sums.ts';
import { createEmbeddedRecords, createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleKey } from '../support/sample-records.ts';
import { addedUp, HOUR, manyNames, requestsIn, usageOf } from '../usage/support/sample-usage.ts';

const APPLIED = { kind: 'applied' };

describe.each([
  ['Postgres', createPostgresRecords],
  ['PGlite', createEmbeddedRecords],
])('the usage history in %s', (_name, create) => {
  let store: TestRecords;
  let history: UsageHistory;
  beforeAll(async () => {
    store = await create();
    history = new PostgresUsageHistory(store.records.db);
  });
  afterAll(() => store.remove());

  async function newKey(): Promise<string> {
    const key = sampleKey();
    await store.records.keys.insert(key);
    return key.id;
  }

  const batch = (keyId: string, id: number, sums: UsageSums): UsageBatch => ({ keyId, id, sums });
  const withoutHours = (sums: UsageSums) => ({ ...sums, hours: new Map() });

  it('has nothing of a key that was not used', async () => {
    expect(await history.read(await newKey())).toEqual({ lastId: 0, sums: usageOf() });
  });

  it('adds up batches of many keys at once, by endpoint, customer and hour', async () => {
    const keyIds = await Promise.all(Array.from({ length: 20 }, newKey));
    const first = usageOf(
      { endpoint: '/ü\\"{}', customer: 'NULL', forwardedUs: 5_000_000_000, times: 4_000 },
      { endpoint: '/b', customer: '__proto__', successful: false, hour: HOUR + 1 },
    );
    const second = usageOf({ endpoint: '/b', customer: 'x', times: 3 }, { endpoint: '', customer: '' });
    const shuffled = keyIds.toReversed();
    expect(await history.apply(shuffled.map((id) => batch(id, 1_790_000_000_000_001, first)))).toEqual(
      keyIds.map(() => APPLIED),
    );
    expect(await history.apply(keyIds.map((id) => batch(id, 1_790_000_000_000_002, second)))).toEqual(
      keyIds.map(() => APPLIED),
    );
    const sum = addedUp([first, second]);
    for (const keyId of keyIds) {
      expect(await history.read(keyId)).toEqual({ lastId: 1_790_000_000_000_002, sums: withoutHours(sum) });
      expect(await history.readHours(keyId, HOUR)).toEqual({
        lastId: 1_790_000_000_000_002,
        hours: sum.hours,
      });
      expect((await history.readHours(keyId, HOUR + 1)).hours.size).toBe(1);
    }
  });

  it('adds a batch once, whoever applies it how often', async () => {
    const [keyId, other] = [await newKey(), await newKey()];
    const once = batch(keyId, 7, usageOf({ times: 3 }));
    expect(await history.apply([once])).toEqual([APPLIED]);
    expect(await history.apply([batch(other, 1, usageOf({})), once])).toEqual([
      APPLIED,
      { kind: 'applied_before' },
    ]);
    expect(await history.apply([batch(keyId, 9, usageOf({}))])).toEqual([APPLIED]);
    expect(await history.apply([once])).toEqual([{ kind: 'overtaken', lastId: 9 }]);
    const { lastId, sums } = await history.read(keyId);
    expect({ lastId, ...sums.totals }).toMatchObject({ lastId: 9, requests: 4 });
    expect(requestsIn((await history.readHours(keyId, 0)).hours.values())).toBe(4);
  });

  it('gives 500 endpoints and 1000 customers of a key a row, over all batches, and sums the rest', async () => {
    const keyId = await newKey();
    const batches = [manyNames(450, 'a'), manyNames(1100, 'b'), manyNames(10, 'c'), manyNames(450, 'a')];
    for (const [index, sums] of batches.entries()) await history.apply([batch(keyId, index + 1, sums)]);
    const { sums } = await history.read(keyId);
    expect(sums.totals.requests).toBe(2010);
    expect([sums.endpoints.size, sums.customers.size]).toEqual([501, 1001]);
    expect(requestsIn(sums.endpoints.values())).toBe(2010);
    expect(requestsIn(sums.customers.values())).toBe(2010);
    expect(sums.endpoints.get('/a449')?.requests).toBe(2);
    expect(sums.endpoints.get(OTHER)?.requests).toBe(1050 + 10);
    expect(sums.customers.get(OTHER)?.requests).toBe(550 + 10);
  });

  it('drops batches of keys that do not exist or were deleted, and takes the others', async () => {
    const [keyId, deleted] = [await newKey(), await newKey()];
    await history.apply([batch(deleted, 1, usageOf({}))]);
    await store.records.keys.delete(deleted);
    expect(await history.read(deleted)).toEqual({ lastId: 0, sums: usageOf() });
    const batches = [deleted, 'key_never_was', keyId].map((id) => batch(id, 2, usageOf({})));
    expect(await history.apply(batches)).toEqual([{ kind: 'key_gone' }, { kind: 'key_gone' }, APPLIED]);
    for (const table of ['usage_totals', 'usage_by_endpoint', 'usage_by_customer', 'usage_by_hour']) {
      const { rows } = await sql`SELECT 1 FROM ${sql.table(table)} WHERE key_id = ${deleted}`.execute(
        store.records.db,
      );
      expect(rows).toEqual([]);
    }
  });

  it('forgets what a key was used for when asked to', async () => {
    const keyId = await newKey();
    await history.apply([batch(keyId, 1, usageOf({}))]);
    await history.erase(keyId);
    expect(await history.read(keyId)).toEqual({ lastId: 0, sums: usageOf() });
    expect((await history.readHours(keyId, 0)).hours.size).toBe(0);
  });

  it('removes hours before a given one, a few at a time, and leaves totals and later hours', async () => {
    const keyId = await newKey();
    const hours = Array.from({ length: 10 }, (_, index) => ({ hour: 1000 + index }));
    await history.apply([batch(keyId, 1, usageOf(...hours))]);
    expect(await history.prune(1006, 4)).toBe(4);
    expect(await history.prune(1006, 4)).toBe(2);
    expect(await history.prune(1006, 4)).toBe(0);
    expect([...(await history.readHours(keyId, 0)).hours.keys()]).toEqual([1006, 1007, 1008, 1009]);
    expect((await history.read(keyId)).sums.totals.requests).toBe(10);
  });

  it('takes the same batches from many at once without a deadlock, and counts them once', async () => {
    const keyIds = await Promise.all(Array.from({ length: 30 }, newKey));
    const shuffled = () => keyIds.toSorted(() => Math.random() - 0.5);
    const rounds = [1, 2, 3, 4, 5];
    for (const id of rounds) {
      await Promise.all(
        rounds.map(() =>
          history.apply(shuffled().map((keyId) => batch(keyId, id, manyNames(5, `${id % 2}`)))),
        ),
      );
    }
    for (const keyId of keyIds) {
      const { sums } = await history.read(keyId);
      expect(sums.totals.requests).toBe(25);
      expect(sums.endpoints.get('/11')?.requests).toBe(3);
    }
  });

  it('keeps its promise when keys are deleted while batches are applied', async () => {
    const keyIds = await Promise.all(Array.from({ length: 20 }, newKey));
    const apply = (id: number) => history.apply(keyIds.map((keyId) => batch(keyId, id, manyNames(3))));
    await Promise.all([
      apply(1),
      ...keyIds.slice(10).map((keyId) => store.records.keys.delete(keyId)),
      apply(1),
    ]);
    const read = await Promise.all(keyIds.map((keyId) => history.read(keyId)));
    expect(read.map(({ sums }) => sums.totals.requests)).toEqual(keyIds.map((_, i) => (i < 10 ? 3 : 0)));
  });
});
