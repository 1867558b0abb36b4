import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { StoreUnavailable } from '../../src/errors.ts';
import type { NewConsumerKey } from '../../src/keys/key-repository.ts';
import { PostgresKeyRepository } from '../../src/storage/postgres/postgres-key-repository.ts';
import { createEmbeddedRecords, createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleKey, samplePlan } from '../support/sample-records.ts';

const LATER_MS = Date.UTC(2025, 5, 1, 0, 0, 0, 1);

describe.each([
  ['Postgres', createPostgresRecords],
  ['PGlite', createEmbeddedRecords],
])('the key repository in %s', (_name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  async function inserted(fields: Partial<NewConsumerKey> = {}): Promise<NewConsumerKey> {
    const key = sampleKey(fields);
    await store.records.keys.insert(key);
    return key;
  }

  async function insertedPlan(fields = {}) {
    const plan = samplePlan(fields);
    expect(await store.records.plans.insert(plan)).toBe(true);
    return plan;
  }

  it('gives back a stored key with every field to the millisecond', async () => {
    const stored = await inserted({ name: 'Ключ 🗝 "\'\\', enabled: false, expiresAtMs: LATER_MS });
    const { lookup: _lookup, sealedSecret, ...key } = stored;
    expect(await store.records.keys.find(stored.id)).toEqual({
      key,
      sealedSecret,
      grant: {
        keyId: stored.id,
        version: '1.1',
        enabled: false,
        expiresAtMs: LATER_MS,
        plan: {
          id: 'default',
          limit: 1000,
          periodText: 'hour',
          period: { kind: 'fixed', token: expect.any(String), lengthMs: 3_600_000 },
        },
      },
    });
  });

  it('keeps a key without a sealed secret', async () => {
    const { id } = await inserted({ sealedSecret: null });
    expect((await store.records.keys.find(id))?.sealedSecret).toBeNull();
  });

  it('lists the newest first, page by page, each key once', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      ids.unshift((await inserted()).id);
    }
    const first = await store.records.keys.list(2);
    const second = await store.records.keys.list(3, first.at(-1)?.id);
    expect([...first, ...second].map(({ id }) => id)).toEqual(ids);
  });

  it('finds the grants that have one of the look-up values, each with its value', async () => {
    const { id, lookup } = await inserted();
    const other = sampleKey().lookup;
    const second = await inserted();
    const grants = await store.records.keys.findGrantsByLookup([other, second.lookup, lookup]);
    expect(new Map(grants.map((found) => [found.lookup.toString('hex'), found.grant]))).toEqual(
      new Map([
        [lookup.toString('hex'), await store.records.keys.findGrantById(id)],
        [second.lookup.toString('hex'), await store.records.keys.findGrantById(second.id)],
      ]),
    );
    expect(await store.records.keys.findGrantsByLookup([other])).toEqual([]);
    expect(await store.records.keys.findGrantsByLookup([])).toEqual([]);
  });

  it('refuses a second key with the same look-up value', async () => {
    const { lookup } = await inserted();
    await expect(store.records.keys.insert(sampleKey({ lookup }))).rejects.toThrow('unique');
  });

  it('changes only the fields that an edit names, and raises the version', async () => {
    const { id, name } = await inserted();
    const disabled = await store.records.keys.update(id, { enabled: false, expiresAtMs: LATER_MS }, LATER_MS);
    expect(disabled?.key).toMatchObject({
      name,
      enabled: false,
      expiresAtMs: LATER_MS,
      updatedAtMs: LATER_MS,
    });
    expect(disabled?.version).toBe('2.1');
    const renamed = await store.records.keys.update(id, { name: 'renamed', expiresAtMs: null }, LATER_MS + 1);
    expect(renamed?.key).toMatchObject({ name: 'renamed', enabled: false, expiresAtMs: null });
    expect(renamed?.version).toBe('3.1');
    expect(await store.records.keys.findGrantById(id)).toMatchObject({ version: '3.1', enabled: false });
  });

  it('binds a plan, which then applies instead of the default', async () => {
    const { id } = await inserted();
    const plan = await insertedPlan({ limit: 999_999_999_999_999, period: 'P1M' });
    const grant = await store.records.keys.bind(id, plan.id, LATER_MS);
    expect(grant).toMatchObject({
      version: '2.1',
      plan: {
        id: plan.id,
        limit: 999_999_999_999_999,
        periodText: 'P1M',
        period: { kind: 'calendar', months: 1 },
      },
    });
    expect(await store.records.keys.find(id)).toMatchObject({
      key: { planId: plan.id, updatedAtMs: LATER_MS },
      grant,
    });
  });

  it('says which of key and plan is missing when it can not bind, and changes nothing', async () => {
    const { id } = await inserted();
    const plan = await insertedPlan();
    expect(await store.records.keys.bind('key_none', plan.id, LATER_MS)).toBe('key_not_found');
    expect(await store.records.keys.bind('key_none', 'none', LATER_MS)).toBe('key_not_found');
    expect(await store.records.keys.bind(id, 'none', LATER_MS)).toBe('plan_not_found');
    expect((await store.records.keys.find(id))?.grant.version).toBe('1.1');
  });

  it('knows which keys and plans exist', async () => {
    expect(await store.records.keys.exists((await inserted()).id)).toBe(true);
    expect(await store.records.keys.exists('key_none')).toBe(false);
    expect(await store.records.keys.planExists('default')).toBe(true);
    expect(await store.records.keys.planExists('none')).toBe(false);
  });

  it('deletes a key once', async () => {
    const { id, lookup } = await inserted();
    expect(await store.records.keys.delete(id)).toBe(true);
    expect(await store.records.keys.delete(id)).toBe(false);
    expect(await store.records.keys.find(id)).toBeUndefined();
    expect(await store.records.keys.findGrantById(id)).toBeUndefined();
    expect(await store.records.keys.findGrantsByLookup([lookup])).toEqual([]);
    expect(await store.records.keys.update(id, { name: 'gone' }, LATER_MS)).toBeUndefined();
  });

  it('raises the version by one for each of many changes at the same time', async () => {
    const { id } = await inserted();
    const plan = await insertedPlan();
    await Promise.all([
      ...Array.from({ length: 5 }, () => store.records.keys.update(id, { name: 'busy' }, LATER_MS)),
      ...Array.from({ length: 5 }, () => store.records.keys.bind(id, plan.id, LATER_MS)),
    ]);
    expect((await store.records.keys.findGrantById(id))?.version).toBe('11.1');
  });

  it('leaves keys without a plan unlimited when no default plan is named', async () => {
    const { id } = await inserted();
    const keys = new PostgresKeyRepository(store.records.db, { defaultPlanId: null });
    expect(await keys.findGrantById(id)).toMatchObject({ version: '1.0', plan: null });
  });

  it('gives no grant when the named default plan does not exist, instead of leaving keys unlimited', async () => {
    const { id, lookup } = await inserted();
    const keys = new PostgresKeyRepository(store.records.db, { defaultPlanId: 'gone' });
    const failure = {
      code: 'store_unavailable',
      cause: new Error(
        'The default plan "gone" does not exist: make it, or set DEFAULT_PLAN_ID to one that does.',
      ),
    };
    await expect(keys.findGrantById(id)).rejects.toMatchObject(failure);
    await expect(keys.find(id)).rejects.toMatchObject(failure);
    const [found] = await keys.findGrantsByLookup([lookup]);
    expect(found?.grant).toBeInstanceOf(StoreUnavailable);
    expect(found?.grant).toMatchObject(failure);
  });

  it('changes, binds and deletes a key whose default plan does not exist', async () => {
    const { id } = await inserted();
    const keys = new PostgresKeyRepository(store.records.db, { defaultPlanId: 'gone' });
    expect(await keys.update(id, { name: 'renamed' }, LATER_MS)).toMatchObject({
      key: { name: 'renamed', planId: null },
      version: '2.0',
    });
    expect(await keys.bind(id, 'none', LATER_MS)).toBe('plan_not_found');
    expect(await keys.bind(id, 'default', LATER_MS)).toMatchObject({ plan: { id: 'default' } });
    const other = await inserted();
    expect(await keys.delete(other.id)).toBe(true);
  });

  it('has every key after the store was closed and opened again', async () => {
    const { id } = await inserted();
    const reopened = await store.reopen('default');
    expect(await reopened.pendingMigrations()).toEqual([]);
    expect(await reopened.migrate()).toEqual([]);
    expect(await reopened.keys.findGrantById(id)).toMatchObject({ plan: { id: 'default' } });
    await reopened.close();
  });
});
