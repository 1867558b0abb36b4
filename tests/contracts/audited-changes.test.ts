import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { AuditChain, CHAIN_START } from '../../src/audit/audit-chain.ts';
import type { AuditedAction } from '../../src/audit/audit-entry.ts';
import { AuditedChanges } from '../../src/storage/postgres/audit/audited-changes.ts';
import type { RecordsDatabase } from '../../src/storage/postgres/records-database.ts';
import { deleteKey, updateKey } from '../support/one-key.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, samplePlan, storeKey } from '../support/sample-records.ts';
import { TEST_VAULT } from '../support/test-vault.ts';

const LATER = sampleChange({ atMs: Date.UTC(2025, 5, 1), reason: 'ticket 7', requestId: 'r-1' });

function deletionOf(keyId: string): AuditedAction {
  return { action: 'key.delete', changes: {}, target: { type: 'key', id: keyId, name: 'n', tags: [] } };
}

describe.each(RECORD_STORES)('changes in %s', (name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  const rows = () => store.records.db.selectFrom('audit_log').selectAll().orderBy('sequence').execute();
  /** Whether a stream hears events. */
  const setHeard = async (isHeard: boolean) => {
    const until = sql`CASE WHEN ${isHeard}::boolean THEN now() + interval '1 hour' END`;
    await sql`UPDATE audit_log_ends SET streamed_until = ${until}`.execute(store.records.db);
  };
  const entriesOf = async (targetId: string) =>
    (await rows())
      .filter((row) => row.target_id === targetId)
      .map(({ action, changes }) => ({ action, changes: JSON.parse(changes) }));

  it('each have an entry with the fields that changed, and who changed them', async () => {
    const key = await storeKey(store.records, { name: 'first', tags: ['eu'] });
    await updateKey(store.records.keys, key.id, { name: 'second', expiresAtMs: Date.UTC(2030, 0, 1) }, LATER);
    await store.records.keys.bind(key.id, 'default', LATER);
    await deleteKey(store.records.keys, key.id, LATER);
    expect(await entriesOf(key.id)).toEqual([
      {
        action: 'key.create',
        changes: {
          name: { from: null, to: 'first' },
          enabled: { from: null, to: true },
          tags: { from: null, to: ['eu'] },
          overrides: { from: null, to: {} },
          selfService: { from: null, to: [] },
          secretHint: { from: null, to: key.secretHint },
        },
      },
      {
        action: 'key.update',
        changes: {
          name: { from: 'first', to: 'second' },
          expiresAt: { from: null, to: '2030-01-01T00:00:00Z' },
        },
      },
      { action: 'key.update', changes: { rateLimitId: { from: null, to: 'default' } } },
      { action: 'key.delete', changes: expect.objectContaining({ name: { from: 'second', to: null } }) },
    ]);
    expect((await rows()).find(({ action }) => action === 'key.update')).toMatchObject({
      at: new Date(LATER.atMs),
      actor_type: 'root',
      target_name: 'second',
      target_tags: ['eu'],
      reason: 'ticket 7',
      request_id: 'r-1',
      address: '127.0.0.1',
      outcome: 'success',
    });
  });

  it('of plans have entries as well', async () => {
    const plan = samplePlan({ limit: 5 });
    await store.records.plans.insert(plan, sampleChange());
    await store.records.plans.update(plan.id, { limit: 6 }, LATER);
    await store.records.plans.delete(plan.id, LATER);
    expect(await entriesOf(plan.id)).toMatchObject([
      { action: 'plan.create', changes: { limit: { from: null, to: 5 } } },
      { action: 'plan.update', changes: { limit: { from: 5, to: 6 } } },
      { action: 'plan.delete', changes: { limit: { from: 6, to: null } } },
    ]);
  });

  it('that change nothing or do not happen have no entry', async () => {
    const before = (await rows()).length;
    const [key, plan] = [sampleKey({ planId: 'default' }), samplePlan()];
    await store.records.keys.insert(key, sampleChange());
    await store.records.plans.insert(plan, sampleChange());
    await updateKey(store.records.keys, key.id, { name: key.name, addTags: [] }, LATER);
    await store.records.keys.bind(key.id, 'default', LATER);
    await updateKey(store.records.keys, key.id, { planId: 'no-such-plan' }, LATER);
    await deleteKey(store.records.keys, 'key_none', LATER);
    await store.records.plans.insert(plan, LATER);
    await store.records.plans.update(plan.id, { limit: plan.limit }, LATER);
    expect(await store.records.plans.delete('default', LATER)).toMatchObject({ boundKeys: 1 });
    expect((await rows()).slice(before).map(({ action }) => action)).toEqual(['key.create', 'plan.create']);
  });

  it('are undone when their entry can not be written', async () => {
    const key = await storeKey(store.records);
    await sql`ALTER TABLE audit_log ADD CONSTRAINT full_log CHECK (reason <> 'unloggable')`.execute(
      store.records.db,
    );
    const unloggable = sampleChange({ reason: 'unloggable' });
    await expect(updateKey(store.records.keys, key.id, { name: 'changed' }, unloggable)).rejects.toThrow();
    await expect(deleteKey(store.records.keys, key.id, unloggable)).rejects.toThrow();
    expect((await store.records.keys.find(key.id))?.key.name).toBe(key.name);
    await sql`ALTER TABLE audit_log DROP CONSTRAINT full_log`.execute(store.records.db);
  });

  it('have an event each, also where they are thousands, while a webhook or a stream wants any', async () => {
    const { db } = store.records;
    await setHeard(true);
    const changes = new AuditedChanges(db, new AuditChain(TEST_VAULT));
    const made = 2001;
    await changes.make(sampleChange(), async (_trx, note) => {
      for (let n = 0; n < made; n += 1) note(deletionOf(`key_${n}`));
    });
    const { rows: events } = await sql<{
      subject: string;
    }>`SELECT subject FROM events ORDER BY sequence`.execute(db);
    expect(events.map(({ subject }) => subject)).toEqual(Array.from({ length: made }, (_, n) => `key_${n}`));
    await setHeard(false);
  });

  it('have an event with another id than one that Postgres lost after it was sent', async () => {
    const { db } = store.records;
    await setHeard(true);
    const eventOf = async (trx: RecordsDatabase, keyId: string) => {
      await new AuditedChanges(trx, new AuditChain(TEST_VAULT)).make(sampleChange(), async (_trx, note) =>
        note(deletionOf(keyId)),
      );
      const { rows: events } = await sql<{ id: string; data: string }>`
        SELECT id, data FROM events WHERE subject = ${keyId}`.execute(trx);
      return { id: events[0]?.id, auditId: JSON.parse(events[0]?.data ?? '{}').auditId };
    };
    const failover = await db.startTransaction().execute();
    const lost = await eventOf(failover, 'key_lost');
    await failover.rollback().execute();
    const kept = await eventOf(db, 'key_kept');
    expect(kept.auditId).toBe(lost.auditId);
    expect(kept.id).not.toBe(lost.id);
    await setHeard(false);
  });

  if (name === 'Postgres')
    it('that change nothing do not wait for others', async () => {
      const { db } = store.records;
      const changes = new AuditedChanges(db, new AuditChain(TEST_VAULT));
      await db.transaction().execute(async (trx) => {
        await sql`SELECT 1 FROM audit_log_ends FOR UPDATE`.execute(trx);
        expect(await changes.make(sampleChange(), async () => 'nothing')).toBe('nothing');
      });
    });

  it('that are made at once are one chain without gaps', async () => {
    await Promise.all(
      Array.from({ length: 20 }, () => store.records.keys.insert(sampleKey(), sampleChange())),
    );
    const all = await rows();
    expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index + 1));
    const previous = [CHAIN_START, ...all.map(({ hash }) => Buffer.from(hash))];
    expect(all.map((row) => Buffer.from(row.previous_hash))).toEqual(previous.slice(0, -1));
  });
});
