import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import type { ChangedRecord, RecordChanges } from '../../src/limiter/changes/record-changes.ts';
import { deleteKey, updateKey } from '../support/one-key.ts';
import { createPostgresRecords, RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, samplePlan, storeKey } from '../support/sample-records.ts';

describe.each(RECORD_STORES)('the changes of records in %s', (_name, create) => {
  let store: TestRecords;
  let changes: RecordChanges;
  beforeAll(async () => {
    store = await create();
    changes = store.records.recordChanges;
  });
  afterAll(() => store.remove());

  /** A key in the store, with a version of its own. */
  async function storedKey(planId: string | null = null): Promise<string> {
    return (await storeKey(store.records, { planId })).id;
  }

  async function changedKey(): Promise<string> {
    const keyId = await storedKey();
    await updateKey(store.records.keys, keyId, { enabled: false }, sampleChange());
    return keyId;
  }

  async function changedSince(position: string): Promise<readonly ChangedRecord[]> {
    return (await changes.read(position)).changed;
  }

  /** As if the rows had been written so long ago. */
  async function age(interval: string): Promise<void> {
    await sql`UPDATE record_changes SET changed_at = changed_at - ${interval}::interval,
      claimed_until = claimed_until - ${interval}::interval`.execute(store.records.db);
  }

  /** Makes claims last: how long a test takes must not matter. */
  async function holdClaims(): Promise<void> {
    await sql`UPDATE record_changes SET claimed_until = claimed_until + interval '1 hour'`.execute(
      store.records.db,
    );
  }

  async function claimedIds(): Promise<readonly string[]> {
    return (await changes.claim(1000)).map(({ id }) => id);
  }

  it('are read once each, with the version that a record has after its last one', async () => {
    const { position, mayMiss } = await changes.read(undefined);
    expect(mayMiss).toBe(true);
    const keyId = await changedKey();
    await updateKey(store.records.keys, keyId, { name: 'again' }, sampleChange());
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    await store.records.plans.update(plan.id, { limit: 11 }, sampleChange());
    const read = await changes.read(position);
    expect(read).toMatchObject({ mayMiss: false });
    expect(read.changed).toHaveLength(2);
    expect(read.changed).toContainEqual({ kind: 'key', id: keyId, version: 3 });
    expect(read.changed).toContainEqual({ kind: 'plan', id: plan.id, version: 2 });
    expect(await changedSince(read.position)).toEqual([]);
  });

  it('include deletions, bindings and moves of whole plans, but no creation and no change without effect', async () => {
    const [from, to] = [samplePlan(), samplePlan()];
    for (const plan of [from, to]) await store.records.plans.insert(plan, sampleChange());
    const { position } = await changes.read(undefined);
    const [moved, deleted, bound] = [await storedKey(from.id), await storedKey(), await storedKey()];
    await updateKey(store.records.keys, moved, { planId: from.id }, sampleChange());
    expect(await changedSince(position)).toEqual([]);
    await deleteKey(store.records.keys, deleted, sampleChange());
    await store.records.keys.bind(bound, to.id, sampleChange());
    await store.records.plans.replace(from.id, to.id, sampleChange());
    expect((await changedSince(position)).toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      { kind: 'key', id: moved, version: 2 },
      { kind: 'key', id: deleted, version: null },
      { kind: 'key', id: bound, version: 2 },
    ]);
  });

  it('are all read where one transaction made thousands', async () => {
    const { position } = await changes.read(undefined);
    await sql`INSERT INTO record_changes (kind, id, version, is_deleted, transaction, changed_at, published_at)
      SELECT 'key', 'many-' || number, 2, false, pg_current_xact_id(), now(), now() FROM generate_series(1, 10000) AS number`.execute(
      store.records.db,
    );
    const many = await changedSince(position);
    expect(new Set(many.map(({ id }) => id)).size).toBe(10_000);
    await sql`DELETE FROM record_changes WHERE id LIKE 'many-%'`.execute(store.records.db);
  });

  it('may be missed after a gap in which they were removed, and where the store went back', async () => {
    const [snapshot = '', atMs = ''] = (await changes.read(undefined)).position.split(' ');
    expect(await changes.read(`${snapshot} ${Number(atMs) - 3_700_000}`)).toMatchObject({ mayMiss: true });
    expect(await changes.read(`900000000:900000000: ${atMs}`)).toMatchObject({ mayMiss: true });
  });

  it('are claimed by one replica, once the one that made them had its time', async () => {
    const keyId = await changedKey();
    await age('-1 hour');
    expect(await claimedIds()).not.toContain(keyId);
    await age('2 hours');
    expect(await claimedIds()).toContain(keyId);
    await holdClaims();
    expect(await claimedIds()).toEqual([]);
    await age('2 hours');
    expect(await claimedIds()).toContain(keyId);
  });

  it('wait until they are settled, and wait again where the record was changed meanwhile', async () => {
    const [settled, changedAgain] = [await changedKey(), await changedKey()];
    await age('10 seconds');
    const claimed = await changes.claim(1000);
    await holdClaims();
    expect((await changes.read(undefined)).waiting).toBe(claimed.length);
    await deleteKey(store.records.keys, changedAgain, sampleChange());
    await changes.settle(claimed);
    await age('2 hours');
    const left = await claimedIds();
    expect(left).toContain(changedAgain);
    expect(left).not.toContain(settled);
  });

  it('are not settled by a claim that is over', async () => {
    const keyId = await changedKey();
    await age('2 seconds');
    const claimed = await changes.claim(1000);
    await age('4 seconds');
    expect(await changes.renew(claimed)).toBe(false);
    await changes.settle(claimed);
    expect(await claimedIds()).toContain(keyId);
  });

  it('are left for longer to who made many at once, or changed a plan', async () => {
    const { db, plans } = store.records;
    const plan = samplePlan();
    await plans.insert(plan, sampleChange());
    await sql`
      INSERT INTO consumer_keys (id, name, created_at, updated_at, lookup, plan_id)
      SELECT 'key_' || lpad(number::text, 26, '0'), 'one of many', now(), now(), sha256(number::text::bytea), ${plan.id}
      FROM generate_series(900001, 904000) AS number`.execute(db);
    await sql`UPDATE consumer_keys SET version = version + 1 WHERE plan_id = ${plan.id}`.execute(db);
    await plans.update(plan.id, { limit: plan.limit + 1 }, sampleChange());
    const { rows } = await sql<{ kind: string; seconds: number; changes: number }>`
      SELECT kind, floor(extract(epoch FROM min(claimed_until - changed_at)))::float8 AS seconds,
        count(*)::float8 AS changes FROM record_changes
      WHERE id = ${plan.id} OR id IN (SELECT id FROM consumer_keys WHERE plan_id = ${plan.id}) GROUP BY kind ORDER BY kind`.execute(
      db,
    );
    expect(rows).toEqual([
      { kind: 'key', seconds: 4, changes: 4000 },
      { kind: 'plan', seconds: 3, changes: 1 },
    ]);
    await sql`DELETE FROM consumer_keys WHERE plan_id = ${plan.id}`.execute(db);
    await sql`DELETE FROM record_changes`.execute(db);
  });

  it('can be claimed at once when they were released, after those that were never tried', async () => {
    const tried = await changedKey();
    await age('2 seconds');
    const claimed = await changes.claim(1000);
    await holdClaims();
    await changes.release(claimed);
    const untried = await changedKey();
    await age('2 seconds');
    const [first] = await changes.claim(1);
    expect(first?.id).toBe(untried);
    expect(await claimedIds()).toContain(tried);
  });

  it('are published up to the version that is noted, and deletions only as such', async () => {
    const [current, behind, deleted] = [await changedKey(), await changedKey(), await changedKey()];
    await updateKey(store.records.keys, behind, { name: 'newer' }, sampleChange());
    await deleteKey(store.records.keys, deleted, sampleChange());
    await changes.notePublished([
      { kind: 'key', id: current, version: 2 },
      { kind: 'key', id: behind, version: 2 },
      { kind: 'key', id: deleted, version: 9 },
    ]);
    await age('2 seconds');
    const waiting = await claimedIds();
    expect(waiting).toEqual(expect.arrayContaining([behind, deleted]));
    expect(waiting).not.toContain(current);
    await changes.notePublished([{ kind: 'key', id: deleted, version: null }]);
    await age('4 seconds');
    expect(await claimedIds()).not.toContain(deleted);
  });

  it('are repeated once for all replicas', async () => {
    const keyId = await changedKey();
    await changes.notePublished([{ kind: 'key', id: keyId, version: 2 }]);
    await age('2 seconds');
    expect(await claimedIds()).not.toContain(keyId);
    expect(await changes.repeat(3000)).toBe(true);
    expect(await claimedIds()).toContain(keyId);
    expect(await changes.repeat(60_000)).toBe(false);
  });

  it('are removed after hours, and unpublished ones after a day', async () => {
    const [published, unpublished] = [await changedKey(), await changedKey()];
    await changes.notePublished([{ kind: 'key', id: published, version: 2 }]);
    await age('3 hours');
    await changes.prune();
    const left = await claimedIds();
    expect(left).toContain(unpublished);
    expect(left).not.toContain(published);
    await age('1 day');
    expect(await changes.prune()).toBeGreaterThan(0);
    expect(await claimedIds()).toEqual([]);
  });

  it('have the versions that keys have now', async () => {
    const plan = samplePlan();
    await store.records.plans.insert(plan, sampleChange());
    const [kept, deleted] = [await storedKey(plan.id), await storedKey(plan.id)];
    await store.records.plans.update(plan.id, { limit: 12 }, sampleChange());
    await deleteKey(store.records.keys, deleted, sampleChange());
    expect(await changes.versionsOf([kept, deleted])).toEqual([{ keyId: kept, version: '1.2' }]);
    const under = [];
    for await (const keys of changes.versionsUnder(plan.id)) under.push(...keys);
    expect(under).toEqual([{ keyId: kept, version: '1.2' }]);
  });
});

describe('changes that are committed in another order than they were made', () => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await createPostgresRecords();
  });
  afterAll(() => store.remove());

  it('are all read', async () => {
    const { keys, recordChanges: changes, db } = store.records;
    const [early, late] = [sampleKey(), sampleKey()];
    for (const key of [early, late]) await keys.insert(key, sampleChange());
    const { position } = await changes.read(undefined);
    const change = (keyId: string) =>
      sql`UPDATE consumer_keys SET enabled = false, version = version + 1 WHERE id = ${keyId}`;
    let afterLate = '';
    await db.transaction().execute(async (transaction) => {
      await change(early.id).execute(transaction);
      await change(late.id).execute(db);
      const read = await changes.read(position);
      expect(read.changed).toEqual([{ kind: 'key', id: late.id, version: 2 }]);
      afterLate = read.position;
    });
    const { changed } = await changes.read(afterLate);
    expect(changed).toEqual([{ kind: 'key', id: early.id, version: 2 }]);
  });
});
