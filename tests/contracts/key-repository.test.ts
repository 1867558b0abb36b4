import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { AuditChain } from '../../src/audit/audit-chain.ts';
import { StoreUnavailable } from '../../src/errors.ts';
import type { KeyChanges, NewConsumerKey, UpdatedKey } from '../../src/keys/key-repository.ts';
import { limitsOfPlan } from '../../src/plans/limits-of-plan.ts';
import { AuditedChanges } from '../../src/storage/postgres/audit/audited-changes.ts';
import { PostgresKeyRepository } from '../../src/storage/postgres/keys/postgres-key-repository.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { deleteKey, updateKey } from '../support/one-key.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, samplePlan, storeKey } from '../support/sample-records.ts';
import { TEST_VAULT } from '../support/test-vault.ts';

const LATER_MS = Date.UTC(2025, 5, 1, 0, 0, 0, 1);

function changesIn(db: RecordsDatabase): AuditedChanges {
  return new AuditedChanges(db, new AuditChain(TEST_VAULT));
}

describe.each(RECORD_STORES)('the key repository in %s', (_name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  const inserted = (fields?: Partial<NewConsumerKey>) => storeKey(store.records, fields);

  async function updated(id: string, changes: KeyChanges, updatedAtMs: number): Promise<UpdatedKey> {
    const key = await updateKey(store.records.keys, id, changes, sampleChange({ atMs: updatedAtMs }));
    if (typeof key === 'object') return key;
    throw new Error(key);
  }

  async function insertedPlan(fields = {}) {
    const plan = samplePlan(fields);
    expect(await store.records.plans.insert(plan, sampleChange())).toBe(true);
    return plan;
  }

  it('gives back a stored key with every field to the millisecond', async () => {
    const stored = await inserted({ name: 'Ключ 🗝 "\'\\', enabled: false, expiresAtMs: LATER_MS });
    const { lookup, digestLookup, secretOrigin, sealedDigest, sealedSecret, ...key } = stored;
    expect([lookup, digestLookup, secretOrigin, sealedDigest]).not.toContain(undefined);
    expect(await store.records.keys.find(stored.id)).toEqual({
      key,
      sealedSecret,
      snapshot: {
        keyId: stored.id,
        version: '1.1',
        enabled: false,
        expiresAtMs: LATER_MS,
        secretVersion: 0,
        previousSecret: null,
        plan: {
          id: 'default',
          limits: limitsOfPlan(
            { limit: 1000, period: 'hour', additionalLimits: [], costs: [] },
            {},
            'insensitive',
          ),
        },
        restrictions: null,
      },
    });
  });

  it("gives a key its overrides, and every other key of the plan the plan's limits", async () => {
    const additionalLimits = [{ limitId: 'burst', limit: 5, period: 'second' }];
    const plan = await insertedPlan({ limit: 100, period: 'hour', additionalLimits });
    const untilMs = Date.UTC(2100, 0);
    const overrides = { main: { limit: 500, untilMs }, burst: { limit: 50, untilMs: null } };
    const [raised, plain] = [sampleKey({ planId: plan.id, overrides }), sampleKey({ planId: plan.id })];
    await store.records.keys.insert(raised, sampleChange());
    await store.records.keys.insert(plain, sampleChange());
    const limitsOf = async (id: string) => (await store.records.keys.find(id))?.snapshot.plan?.limits.all;
    expect(await limitsOf(raised.id)).toMatchObject([
      { id: 'main', limit: 500, baseLimit: 100, endsAtMs: untilMs },
      { id: 'burst', limit: 50, baseLimit: 5, endsAtMs: null },
    ]);
    expect(await limitsOf(plain.id)).toMatchObject([{ limit: 100 }, { limit: 5 }]);
    await updateKey(store.records.keys, raised.id, { overrides: {} }, sampleChange({ atMs: LATER_MS }));
    expect(await limitsOf(raised.id)).toMatchObject([{ limit: 100 }, { limit: 5 }]);
    expect((await store.records.keys.find(raised.id))?.key.overrides).toEqual({});
  });

  it('finds the copies that it contradicts, and no others', async () => {
    const { keys, plans } = store.records;
    const [current, disabled, replanned, gone, unplanned] = [
      await inserted(),
      await inserted(),
      await inserted(),
      await inserted(),
      await inserted(),
    ];
    const plan = await insertedPlan();
    await keys.bind(replanned.id, plan.id, sampleChange({ atMs: LATER_MS }));
    const copies = await Promise.all(
      [current, disabled, replanned, gone, unplanned].map(async ({ id }) => {
        const { version = '' } = (await keys.find(id))?.snapshot ?? {};
        return { keyId: id, version };
      }),
    );
    expect(await keys.findOutdated(copies)).toEqual([]);
    await updateKey(keys, disabled.id, { enabled: false }, sampleChange({ atMs: LATER_MS }));
    await plans.update(plan.id, { limit: 7 }, sampleChange({ atMs: LATER_MS }));
    await deleteKey(keys, gone.id, sampleChange());
    const outdated = await keys.findOutdated(copies);
    expect(outdated).toHaveLength(3);
    expect(new Set(outdated)).toEqual(
      new Set([
        { keyId: disabled.id, version: '1.1', isGone: false },
        { keyId: replanned.id, version: '2.1', isGone: false },
        { keyId: gone.id, version: '1.1', isGone: true },
      ]),
    );
    expect(await keys.findOutdated([])).toEqual([]);
  });

  it('compares copies of keys without any plan', async () => {
    const { id } = await inserted();
    const unlimited = new PostgresKeyRepository(store.records.db, changesIn(store.records.db), {
      defaultPlanId: null,
    });
    expect(await unlimited.findOutdated([{ keyId: id, version: '1.0' }])).toEqual([]);
    expect(await unlimited.findOutdated([{ keyId: id, version: '1.1' }])).toHaveLength(1);
  });

  it('keeps a key without a sealed secret', async () => {
    const { id } = await inserted({ sealedSecret: null });
    expect((await store.records.keys.find(id))?.sealedSecret).toBeNull();
  });

  it('finds the snapshots that have one of the look-up values, each with its value', async () => {
    const { id, lookup } = await inserted();
    const other = sampleKey().lookup;
    const second = await inserted();
    const snapshots = await store.records.keys.findSnapshotsByLookup([other, second.lookup, lookup]);
    expect(new Map(snapshots.map((found) => [found.lookup.toString('hex'), found.snapshot]))).toEqual(
      new Map([
        [lookup.toString('hex'), (await store.records.keys.find(id))?.snapshot],
        [second.lookup.toString('hex'), (await store.records.keys.find(second.id))?.snapshot],
      ]),
    );
    expect(await store.records.keys.findSnapshotsByLookup([other])).toEqual([]);
    expect(await store.records.keys.findSnapshotsByLookup([])).toEqual([]);
  });

  it('rejects a second key with the same look-up value', async () => {
    const { lookup } = await inserted();
    await expect(store.records.keys.insert(sampleKey({ lookup }), sampleChange())).rejects.toThrow('unique');
  });

  it('changes only the fields that an edit names, and raises the version', async () => {
    const { id, name } = await inserted();
    const disabled = await updated(id, { enabled: false, expiresAtMs: LATER_MS }, LATER_MS);
    expect(disabled.key).toMatchObject({
      name,
      enabled: false,
      expiresAtMs: LATER_MS,
      updatedAtMs: LATER_MS,
    });
    expect(disabled.version).toBe('2.1');
    const renamed = await updated(id, { name: 'renamed', expiresAtMs: null }, LATER_MS + 1);
    expect(renamed.key).toMatchObject({ name: 'renamed', enabled: false, expiresAtMs: null });
    expect(renamed.version).toBe('3.1');
    expect((await store.records.keys.find(id))?.snapshot).toMatchObject({ version: '3.1', enabled: false });
  });

  it('binds a plan, which then applies instead of the default', async () => {
    const { id } = await inserted();
    const plan = await insertedPlan({ limit: 999_999_999_999_999, period: 'P1M' });
    const snapshot = await store.records.keys.bind(id, plan.id, sampleChange({ atMs: LATER_MS }));
    expect(snapshot).toMatchObject({
      version: '2.1',
      plan: {
        id: plan.id,
        limits: {
          main: { limit: 999_999_999_999_999, periodText: 'P1M', period: { kind: 'calendar', months: 1 } },
        },
      },
    });
    expect(await store.records.keys.find(id)).toMatchObject({
      key: { planId: plan.id, updatedAtMs: LATER_MS },
      snapshot,
    });
  });

  it('says which of key and plan is missing when it can not bind, and changes nothing', async () => {
    const { id } = await inserted();
    const plan = await insertedPlan();
    expect(await store.records.keys.bind('key_none', plan.id, sampleChange({ atMs: LATER_MS }))).toBe(
      'key_not_found',
    );
    expect(await store.records.keys.bind('key_none', 'none', sampleChange({ atMs: LATER_MS }))).toBe(
      'key_not_found',
    );
    expect(await store.records.keys.bind(id, 'none', sampleChange({ atMs: LATER_MS }))).toBe(
      'plan_not_found',
    );
    expect((await store.records.keys.find(id))?.snapshot.version).toBe('1.1');
  });

  it('knows which keys and plans exist', async () => {
    const { id } = await inserted();
    expect(await store.records.keys.existing([id, 'key_none'], [])).toEqual(new Set([id]));
    expect(await store.records.keys.existing([id], ['eu'])).toEqual(new Set());
    expect(await store.records.keys.planExists('default')).toBe(true);
    expect(await store.records.keys.planExists('none')).toBe(false);
  });

  it('deletes a key once', async () => {
    const { id, lookup } = await inserted();
    expect(await deleteKey(store.records.keys, id, sampleChange())).toBe(true);
    expect(await deleteKey(store.records.keys, id, sampleChange())).toBe(false);
    expect(await store.records.keys.find(id)).toBeUndefined();
    expect(await store.records.keys.findSnapshotsByLookup([lookup])).toEqual([]);
    expect(await updateKey(store.records.keys, id, { name: 'gone' }, sampleChange({ atMs: LATER_MS }))).toBe(
      'key_not_found',
    );
  });

  it('leaves a key alone that is as the edit wants it already', async () => {
    const { id, name } = await inserted({ tags: ['a', 'b'], metadata: { note: [1] } });
    const same = { name, tags: ['a', 'b'], addTags: ['b'], removeTags: ['c'], metadata: { note: [1] } };
    const { key, version } = await updated(id, same, LATER_MS);
    expect([key.updatedAtMs, version]).toEqual([key.createdAtMs, '1.1']);
  });

  it('changes the plan, the owner, the metadata and the tags of a key', async () => {
    const { id } = await inserted({ tags: ['a', 'b'] });
    const plan = await insertedPlan();
    const changes = {
      planId: plan.id,
      externalId: 'acme',
      metadata: { n: 1 },
      addTags: ['c'],
      removeTags: ['a'],
    };
    expect((await updated(id, changes, LATER_MS)).key).toMatchObject({
      planId: plan.id,
      externalId: 'acme',
      metadata: { n: 1 },
      tags: ['b', 'c'],
    });
    expect((await store.records.keys.find(id))?.snapshot.plan?.id).toBe(plan.id);
    const cleared = { planId: null, externalId: null, metadata: null, tags: [] };
    expect((await updated(id, cleared, LATER_MS)).key).toMatchObject(cleared);
    expect(
      await updateKey(store.records.keys, id, { planId: 'none' }, sampleChange({ atMs: LATER_MS })),
    ).toBe('plan_not_found');
    const many = Array.from({ length: 21 }, (_, n) => `t${n}`);
    expect(await updateKey(store.records.keys, id, { addTags: many }, sampleChange({ atMs: LATER_MS }))).toBe(
      'too_many_tags',
    );
  });

  it('gives a key the addresses from which it may be used, until they are removed', async () => {
    const allowedIps = ['192.0.2.0/24', '2001:DB8::1'];
    const { id } = await inserted({ allowedIps });
    const { key, snapshot } = (await store.records.keys.find(id)) ?? {};
    expect(key?.allowedIps).toEqual(allowedIps);
    expect(snapshot?.restrictions?.addresses?.includes('192.0.2.77')).toBe(true);
    expect(snapshot?.restrictions?.addresses?.includes('192.0.3.77')).toBe(false);
    expect((await updated(id, { allowedIps }, LATER_MS)).version).toBe('1.1');
    expect(await updated(id, { allowedIps: null }, LATER_MS)).toMatchObject({
      key: { allowedIps: null },
      version: '2.1',
    });
    expect((await store.records.keys.find(id))?.snapshot.restrictions).toBeNull();
  });

  it('finds the origins that some key allows, until no key does', async () => {
    const [page, level] = ['https://one.example', 'https://*.two.example'];
    const first = await inserted({ allowedOrigins: [page, level] });
    const second = await inserted({ allowedOrigins: [page] });
    const found = async () =>
      [...(await store.records.keys.findOriginEntries([level, page, 'no']))].toSorted();
    expect(await found()).toEqual([level, page]);
    expect((await store.records.keys.find(first.id))?.key.allowedOrigins).toEqual([page, level]);
    const snapshot = (await store.records.keys.find(first.id))?.snapshot;
    expect(snapshot?.restrictions?.origins?.includes('https://a.two.example')).toBe(true);
    await updated(first.id, { allowedOrigins: null }, LATER_MS);
    expect(await found()).toEqual([page]);
    await deleteKey(store.records.keys, second.id, sampleChange());
    expect(await found()).toEqual([]);
    expect(await store.records.keys.findOriginEntries([])).toEqual([]);
  });

  it('finds the snapshots of many keys at once, but those that are gone', async () => {
    const keys = [await inserted(), await inserted({ enabled: false })];
    const ids = [...keys.map(({ id }) => id), sampleKey().id];
    const found = await store.records.keys.findSnapshotsOrErrors(ids);
    const each = await Promise.all(keys.map(async ({ id }) => (await store.records.keys.find(id))?.snapshot));
    expect(found).toEqual(new Map(each.map((snapshot) => [snapshot?.keyId, snapshot])));
    expect(await store.records.keys.findSnapshotsOrErrors([])).toEqual(new Map());
  });

  it('finds each of many keys, whatever is wrong with others', async () => {
    const plan = await insertedPlan();
    const [bound, unbound] = [await inserted({ planId: plan.id }), await inserted()];
    const keys = new PostgresKeyRepository(store.records.db, changesIn(store.records.db), {
      defaultPlanId: 'gone',
    });
    const found = await keys.findSnapshotsOrErrors([bound.id, unbound.id, sampleKey().id]);
    expect([...found.keys()].toSorted()).toEqual([bound.id, unbound.id].toSorted());
    expect(found.get(bound.id)).toEqual((await keys.find(bound.id))?.snapshot);
    expect(found.get(unbound.id)).toBeInstanceOf(StoreUnavailable);
  });

  it('finds the names of many keys at once, but of those that are gone', async () => {
    const keys = [await inserted({ name: 'first' }), await inserted({ name: "sec'ond" })];
    const found = await store.records.keys.findNames([...keys.map(({ id }) => id), '__other__', '']);
    expect(found).toEqual(new Map(keys.map(({ id, name }) => [id, name])));
    expect(await store.records.keys.findNames([])).toEqual(new Map());
  });

  it('raises the version by one for each of many changes at the same time', async () => {
    const { id } = await inserted();
    const plans = await Promise.all(Array.from({ length: 5 }, () => insertedPlan()));
    await Promise.all([
      ...Array.from({ length: 5 }, (_, n) =>
        updateKey(store.records.keys, id, { name: `busy ${n}` }, sampleChange({ atMs: LATER_MS })),
      ),
      ...plans.map((plan) => store.records.keys.bind(id, plan.id, sampleChange({ atMs: LATER_MS }))),
    ]);
    expect((await store.records.keys.find(id))?.snapshot.version).toBe('11.1');
  });

  it('leaves keys without a plan unlimited when no default plan is named', async () => {
    const { id } = await inserted();
    const keys = new PostgresKeyRepository(store.records.db, changesIn(store.records.db), {
      defaultPlanId: null,
    });
    expect((await keys.find(id))?.snapshot).toMatchObject({ version: '1.0', plan: null });
  });

  it('gives no snapshot when the default plan is missing, so that no key is unlimited', async () => {
    const { id, lookup } = await inserted();
    const keys = new PostgresKeyRepository(store.records.db, changesIn(store.records.db), {
      defaultPlanId: 'gone',
    });
    const failure = {
      code: 'store_unavailable',
      cause: new Error(
        'The default plan "gone" does not exist: make it, or set DEFAULT_PLAN_ID to one that does.',
      ),
    };
    await expect(keys.find(id)).rejects.toMatchObject(failure);
    const [found] = await keys.findSnapshotsByLookup([lookup]);
    expect(found?.snapshot).toBeInstanceOf(StoreUnavailable);
    expect(found?.snapshot).toMatchObject(failure);
  });

  it('changes, binds and deletes a key whose default plan does not exist', async () => {
    const { id } = await inserted();
    const keys = new PostgresKeyRepository(store.records.db, changesIn(store.records.db), {
      defaultPlanId: 'gone',
    });
    expect(await updateKey(keys, id, { name: 'renamed' }, sampleChange({ atMs: LATER_MS }))).toMatchObject({
      key: { name: 'renamed', planId: null },
      version: '2.0',
    });
    expect(await keys.bind(id, 'none', sampleChange({ atMs: LATER_MS }))).toBe('plan_not_found');
    expect(await keys.bind(id, 'default', sampleChange({ atMs: LATER_MS }))).toMatchObject({
      plan: { id: 'default' },
    });
    const other = await inserted();
    expect(await deleteKey(keys, other.id, sampleChange())).toBe(true);
  });

  it('has every key after the store was closed and opened again', async () => {
    const { id } = await inserted();
    const reopened = await store.reopen('default');
    expect(await reopened.pendingMigrations()).toEqual([]);
    expect(await reopened.migrate()).toEqual([]);
    expect((await reopened.keys.find(id))?.snapshot).toMatchObject({ plan: { id: 'default' } });
    await reopened.close();
  });
});
