import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { RecordVersion } from '../../src/limiter/record-versions.ts';
import { deleteKey } from '../support/one-key.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, samplePlan, storeKey, storeKeys } from '../support/sample-records.ts';

const LATER_MS = Date.UTC(2025, 5, 1, 0, 0, 0, 1);

describe.each(RECORD_STORES)('the plan repository in %s', (_name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  async function batchesUnder(planId: string): Promise<readonly (readonly RecordVersion[])[]> {
    const batches: (readonly RecordVersion[])[] = [];
    for await (const batch of store.records.plans.keysUnder(planId)) {
      batches.push(batch);
    }
    return batches;
  }

  async function versionsUnder(planId: string): Promise<Record<string, string>> {
    return Object.fromEntries(
      (await batchesUnder(planId)).flat().map(({ keyId, version }) => [keyId, version]),
    );
  }

  it('starts with the plan "default", 1000 requests an hour', async () => {
    expect(await store.records.plans.find('default')).toMatchObject({
      limit: 1000,
      period: 'hour',
      version: 1,
    });
  });

  it('gives back a stored plan with every field as sent', async () => {
    const plan = samplePlan({
      id: 'Gold.plan_1-x',
      limit: 999_999_999_999_999,
      period: ' 15 MINUTES',
      description: '',
    });
    expect(await store.records.plans.insert(plan, sampleChange())).toBe(true);
    expect(await store.records.plans.find(plan.id)).toEqual(plan);
  });

  it('does not overwrite a plan whose id is taken', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    expect(await store.records.plans.insert({ ...plan, limit: 99 }, sampleChange())).toBe(false);
    expect(await store.records.plans.find(plan.id)).toEqual(plan);
  });

  it('lists all plans by id', async () => {
    await store.records.plans.insert(samplePlan({ id: 'a-lower' }), sampleChange());
    await store.records.plans.insert(samplePlan({ id: 'Z-upper' }), sampleChange());
    const ids = (await store.records.plans.list({})).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(['Z-upper', 'a-lower', 'default']));
    expect(ids).toEqual(ids.toSorted());
  });

  it('changes only the fields that an edit names, and raises the version', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    expect(await store.records.plans.update(plan.id, { limit: 7 }, sampleChange({ atMs: LATER_MS }))).toEqual(
      {
        ...plan,
        limit: 7,
        updatedAtMs: LATER_MS,
        version: 2,
      },
    );
    await store.records.plans.update(
      plan.id,
      { period: 'day', description: 'x' },
      sampleChange({ atMs: LATER_MS }),
    );
    expect(await store.records.plans.find(plan.id)).toMatchObject({ limit: 7, period: 'day', version: 3 });
    expect(
      await store.records.plans.update('none', { limit: 7 }, sampleChange({ atMs: LATER_MS })),
    ).toBeUndefined();
  });

  it('rejects the second of two changes at once that contradict each other', async () => {
    for (let round = 0; round < 10; round += 1) {
      const plan = samplePlan({ limit: 100 });
      await store.records.plans.insert(plan, sampleChange());
      const costs = [{ path: '/batch', cost: 50 }];
      const outcomes = await Promise.allSettled([
        store.records.plans.update(plan.id, { limit: 10 }, sampleChange()),
        store.records.plans.update(plan.id, { costs }, sampleChange()),
      ]);
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      const rejected = outcomes.find(({ status }) => status === 'rejected');
      expect(rejected).toMatchObject({ reason: { code: 'invalid_body' } });
    }
  });

  it('deletes a plan that no key uses, and none that a key uses', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    const key = await storeKey(store.records, { planId: plan.id });
    expect(await store.records.plans.delete(plan.id, sampleChange())).toMatchObject({ boundKeys: 1 });
    await deleteKey(store.records.keys, key.id, sampleChange());
    expect(await store.records.plans.delete(plan.id, sampleChange())).toBe('deleted');
    expect(await store.records.plans.delete(plan.id, sampleChange())).toBe('not_found');
  });

  it('names every key under a plan once, in batches of at most 1000, with its version', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    const keys = Array.from({ length: 1001 }, () => sampleKey({ planId: plan.id }));
    await storeKeys(store.records, keys);
    await store.records.plans.update(plan.id, { limit: 5 }, sampleChange({ atMs: LATER_MS }));
    const batches = await batchesUnder(plan.id);
    expect(batches.map((batch) => batch.length)).toEqual([1000, 1]);
    expect(batches.flat().map(({ keyId }) => keyId)).toEqual(keys.map(({ id }) => id).toSorted());
    expect(new Set(batches.flat().map(({ version }) => version))).toEqual(new Set(['1.2']));
  });

  it('counts keys without a plan under the default plan, and under no other', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    const [free, bound, explicit] = [
      sampleKey(),
      sampleKey({ planId: plan.id }),
      sampleKey({ planId: 'default' }),
    ];
    await Promise.all([free, bound, explicit].map((key) => store.records.keys.insert(key, sampleChange())));
    expect(await versionsUnder(plan.id)).toEqual({ [bound.id]: '1.1' });
    const underDefault = await versionsUnder('default');
    expect(underDefault).toMatchObject({ [free.id]: '1.1', [explicit.id]: '1.1' });
    expect(underDefault).not.toHaveProperty(bound.id);
    expect(await versionsUnder('none')).toEqual({});
  });

  it('never loses a plan under a key when binding and deleting meet', async () => {
    for (let round = 0; round < 10; round += 1) {
      const plan = samplePlan();
      const key = sampleKey();
      await store.records.plans.insert(plan, sampleChange());
      await store.records.keys.insert(key, sampleChange());
      const [bound, deleted] = await Promise.all([
        store.records.keys.bind(key.id, plan.id, sampleChange({ atMs: LATER_MS })),
        store.records.plans.delete(plan.id, sampleChange()),
      ]);
      expect(deleted).toEqual(
        bound === 'plan_not_found' ? 'deleted' : { boundKeys: 1, hasUnseenKeys: false },
      );
    }
  });
});
