import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { PlanExists, PlanInUse, PlanIsDefault, PlanNotFound, StoreUnavailable } from '../../src/errors.ts';
import { PlanService } from '../../src/plans/plan-service.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { deleteKey } from '../support/one-key.ts';
import { RecordingVersions } from '../support/recording-versions.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey } from '../support/sample-records.ts';

const START_MS = Date.UTC(2025, 0, 1);
const GOLD = { description: 'the good one', limit: 5, period: '15m', additionalLimits: [], costs: [] };

describe('the service of plans', () => {
  let store: TestRecords;
  let versions: RecordingVersions;
  let clock: ManualClock;
  let service: PlanService;
  beforeAll(async () => {
    store = await createPostgresRecords();
  });
  afterAll(() => store.remove());
  beforeEach(() => {
    versions = new RecordingVersions();
    clock = new ManualClock(START_MS);
    service = new PlanService({
      repository: store.records.plans,
      committed: store.records.plans,
      versions,
      defaultPlanId: 'default',
      pathCase: 'insensitive',
    });
  });

  const now = () => sampleChange({ atMs: clock.nowMs() });

  it('makes a plan with its fields as sent, once for each id', async () => {
    const plan = await service.create({ id: 'gold', ...GOLD }, now());
    const made = { createdAtMs: START_MS, updatedAtMs: START_MS, version: 1, managedBy: null };
    expect(plan).toEqual({ id: 'gold', ...GOLD, ...made });
    expect(await service.get('gold')).toEqual(plan);
    expect(await service.list()).toContainEqual(plan);
    await expect(service.create({ id: 'gold', ...GOLD, limit: 6 }, now())).rejects.toThrow(PlanExists);
    expect(await service.get('gold')).toEqual(plan);
  });

  it('marks every key of a plan stale before an edit, and publishes versions after', async () => {
    await service.create({ id: 'edited', ...GOLD }, now());
    const keys = [sampleKey({ planId: 'edited' }), sampleKey({ planId: 'edited' })];
    await Promise.all(keys.map((key) => store.records.keys.insert(key, now())));
    const ids = keys.map(({ id }) => id);
    versions.look = async () => (await store.records.plans.find('edited'))?.limit;
    clock.advance(1000);
    expect(await service.update('edited', { limit: 9 }, now())).toMatchObject({
      ...GOLD,
      limit: 9,
      updatedAtMs: START_MS + 1000,
    });
    expect(versions.steps).toEqual([
      { step: 'markStale', keys: ids, stored: 5 },
      { step: 'publishVersion', keys: ids, versions: ['1.2', '1.2'], stored: 9 },
    ]);
  });

  it('marks keys without a plan stale before an edit of the default plan', async () => {
    const key = sampleKey();
    await store.records.keys.insert(key, now());
    await service.update('default', { description: 'edited' }, now());
    expect(versions.steps).toEqual([
      expect.objectContaining({ step: 'markStale', keys: expect.arrayContaining([key.id]) }),
      expect.objectContaining({ step: 'publishVersion', keys: expect.arrayContaining([key.id]) }),
    ]);
  });

  it('writes nothing when the edit can not be announced', async () => {
    await service.create({ id: 'kept', ...GOLD }, now());
    await store.records.keys.insert(sampleKey({ planId: 'kept' }), now());
    versions.failing = { step: 'markStale', error: new StoreUnavailable('redis', undefined) };
    await expect(service.update('kept', { limit: 9 }, now())).rejects.toThrow(StoreUnavailable);
    expect(await service.get('kept')).toMatchObject({ limit: 5, version: 1 });
  });

  it('deletes a plan that no key is bound to, and rejects any other', async () => {
    await service.create({ id: 'used', ...GOLD }, now());
    const key = sampleKey({ planId: 'used' });
    await store.records.keys.insert(key, now());
    await expect(service.remove('used', now())).rejects.toThrow(PlanInUse);
    await deleteKey(store.records.keys, key.id, now());
    await service.remove('used', now());
    await expect(service.remove('used', now())).rejects.toThrow(PlanNotFound);
  });

  it('never deletes the default plan', async () => {
    await expect(service.remove('default', now())).rejects.toThrow(PlanIsDefault);
    expect(await service.get('default')).toMatchObject({ id: 'default' });
  });

  it.each([null, 'other'])(
    'keeps the plan that applies by default while the settings name %s',
    async (id) => {
      const other = new PlanService({
        repository: store.records.plans,
        committed: store.records.plans,
        versions,
        defaultPlanId: id,
        pathCase: 'insensitive',
      });
      await expect(other.remove('default', now())).rejects.toThrow(PlanIsDefault);
    },
  );

  it('settles the keys without a plan when the default plan is made after them', async () => {
    const late = await createPostgresRecords('late');
    try {
      const key = sampleKey();
      await late.records.keys.insert(key, now());
      const repository = late.records.plans;
      const plans = new PlanService({
        repository,
        committed: repository,
        versions,
        defaultPlanId: 'late',
        pathCase: 'insensitive',
      });
      await plans.create({ id: 'another', ...GOLD }, now());
      expect(versions.steps).toEqual([]);
      await plans.create({ id: 'late', ...GOLD }, now());
      expect(versions.steps).toEqual([
        { step: 'publishVersion', keys: [key.id], versions: ['1.1'], stored: undefined },
      ]);
    } finally {
      await late.remove();
    }
  });

  it.each(['none', '', '\0', 'a/b'])('knows no plan "%s"', async (planId) => {
    await expect(service.get(planId)).rejects.toThrow(PlanNotFound);
    await expect(service.update(planId, { limit: 1 }, now())).rejects.toThrow(PlanNotFound);
    await expect(service.remove(planId, now())).rejects.toThrow(PlanNotFound);
    expect(versions.steps).toEqual([]);
  });
});
