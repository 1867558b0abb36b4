import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import type { AuditedAction } from '../../src/audit/audit-entry.ts';
import { StoreUnavailable } from '../../src/errors.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey } from '../support/sample-records.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2025, 0, 1);
const ACTION: AuditedAction = {
  action: 'limits.reset',
  target: { type: 'key', id: 'key_a', name: 'a key', tags: ['eu'] },
  changes: { limitId: { from: null, to: 'main' } },
};

describe.each(RECORD_STORES)('the audit log in %s', (_name, create) => {
  let store: TestRecords;
  const atDay = (day: number) => sampleChange({ atMs: START_MS + day * DAY_MS });
  beforeAll(async () => {
    store = await create();
    for (let day = 0; day < 5; day += 1) await store.records.audit.record(ACTION, atDay(day));
  });
  afterAll(() => store.remove());

  const sequences = async (filter: object, limit = 100) =>
    (await store.records.audit.list(filter, { limit })).map(({ sequence }) => sequence);

  /** Changes the log behind its back, and changes it back. */
  async function whileTampered(query: string, undo: string, run: () => Promise<void>): Promise<void> {
    await sql.raw(query).execute(store.records.db);
    await run();
    await sql.raw(undo).execute(store.records.db);
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true });
  }

  it('gives back entries as they were written, newest first', async () => {
    const [newest] = await store.records.audit.list({}, { limit: 1 });
    const { onlyTags, expects, ...context } = atDay(4);
    const { changes, ...action } = ACTION;
    const written = { ...action, changesText: JSON.stringify(changes), outcome: 'success', jobId: null };
    expect(newest).toEqual({ ...written, ...context, sequence: 5 });
    expect(await sequences({})).toEqual([5, 4, 3, 2, 1]);
  });

  it('is read by time, action, actor, target and tags', async () => {
    const fromMs = START_MS + 2 * DAY_MS;
    expect(await sequences({ fromMs })).toEqual([5, 4, 3]);
    expect(await sequences({ fromMs, toMs: fromMs + 1 })).toEqual([3]);
    expect(await sequences({ action: 'limits.reset', actorId: 'root', targetId: 'key_a' }, 2)).toEqual([
      5, 4,
    ]);
    expect(await sequences({ action: 'key.create' })).toEqual([]);
    expect(await sequences({ actorId: 'config' })).toEqual([]);
    expect(await sequences({ actorId: 'adm_x' })).toEqual([]);
    expect(await sequences({ targetId: 'key_b' })).toEqual([]);
    expect(await sequences({ onlyTags: ['eu'] })).toHaveLength(5);
    expect(await sequences({ onlyTags: ['eu', 'us'] })).toEqual([]);
  });

  it('verifies as long as nothing was changed', async () => {
    const report = await store.records.audit.verify();
    expect(report).toMatchObject({ isValid: true, entries: 5, firstBroken: undefined });
    expect(report.problem).toBeUndefined();
    expect(report.head).toEqual({
      count: 5,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      atMs: atDay(4).atMs,
    });
  });

  it.each([
    ['actor', `actor_name = 'somebody'`, `actor_name = 'root'`],
    ['time', `at = at + interval '1 millisecond'`, `at = at - interval '1 millisecond'`],
    ['changes', `changes = '{}'`, `changes = '${JSON.stringify(ACTION.changes)}'`],
    ['reason', `reason = 'because'`, 'reason = NULL'],
    ['tags', `target_tags = '{us}'`, `target_tags = '{eu}'`],
    ['outcome', `outcome = 'missing_scope'`, `outcome = 'success'`],
  ])('names the first entry whose %s was changed', async (_what, change, undo) => {
    const set = (values: string) => `UPDATE audit_log SET ${values} WHERE sequence = 3`;
    await whileTampered(set(change), set(undo), async () => {
      expect(await store.records.audit.verify()).toMatchObject({
        isValid: false,
        entries: 2,
        firstBroken: 3,
      });
    });
  });

  it.each([
    ['first', 1],
    ['middle', 3],
    ['last', 5],
  ])('names the %s entry when it was removed', async (_which, sequence) => {
    const hide = `UPDATE audit_log SET sequence = -1 WHERE sequence = ${sequence}`;
    const show = `UPDATE audit_log SET sequence = ${sequence} WHERE sequence = -1`;
    await whileTampered(hide, show, async () => {
      expect(await store.records.audit.verify()).toMatchObject({ isValid: false, firstBroken: sequence });
    });
  });

  it('still verifies after the oldest entries were removed, and goes on', async () => {
    expect(await store.records.audit.prune(START_MS, 0)).toBe(0);
    expect(await store.records.audit.prune(START_MS + 2 * DAY_MS, 0)).toBe(2);
    expect(await sequences({})).toEqual([5, 4, 3]);
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 3 });
    await store.records.keys.insert(sampleKey(), atDay(5));
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 4 });
    await whileTampered(
      'UPDATE audit_log SET sequence = -1 WHERE sequence = 3',
      'UPDATE audit_log SET sequence = 3 WHERE sequence = -1',
      async () => {
        expect(await store.records.audit.verify()).toMatchObject({ isValid: false, firstBroken: 3 });
      },
    );
  });

  it('keeps an entry that is younger than one behind it, and all after it', async () => {
    const before = await sequences({});
    await store.records.audit.record(ACTION, atDay(100));
    await store.records.audit.record(ACTION, atDay(6));
    expect(await store.records.audit.prune(START_MS + 50 * DAY_MS, 0)).toBe(before.length);
    expect(await sequences({})).toHaveLength(2);
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 2 });
  });

  it('keeps what a removal has not come to that is to end, and remains valid', async () => {
    const own = await create();
    const { audit } = own.records;
    for (let made = 0; made < 251; made += 1) await audit.record(ACTION, atDay(1));
    expect(await audit.prune(START_MS + 2 * DAY_MS, 0, () => false)).toBe(250);
    expect(await audit.verify()).toMatchObject({ isValid: true, entries: 1 });
    await own.remove();
  });

  it('can be empty', async () => {
    expect(await store.records.audit.prune(START_MS + 1000 * DAY_MS, 0)).toBe(2);
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 0 });
    await store.records.audit.record(ACTION, atDay(7));
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 1 });
  });

  it('has no secret that was typed into a name, a reason or metadata', async () => {
    const secret = `tg_${'Ab3'.repeat(12)}`;
    const key = sampleKey({ name: `for ${secret}`, metadata: { note: `was ${secret}` } });
    const actor = { type: 'key', id: key.id, name: key.name } as const;
    await store.records.keys.insert(key, sampleChange({ actor, reason: `lost ${secret}` }));
    const [entry] = await store.records.audit.list({}, { limit: 1 });
    expect(JSON.stringify(entry)).not.toContain(secret);
    const name = 'for ***';
    expect(entry).toMatchObject({ reason: 'lost ***', actor: { ...actor, name }, target: { name } });
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true });
  });

  it('can be read when a secret was typed after a line break, or as a name', async () => {
    const secret = `tg_${'Ab3'.repeat(12)}`;
    const metadata = {
      note: `was\n${secret}`,
      control: `\u001f${secret}`,
      [secret]: ['\t', { deep: secret }],
    };
    await store.records.keys.insert(sampleKey({ metadata }), sampleChange());
    const [entry] = await store.records.audit.list({}, { limit: 1 });
    const masked = { note: 'was\n***', control: '\u001f***', '***': ['\t', { deep: '***' }] };
    expect(JSON.parse(entry?.changesText ?? '').metadata).toEqual({ from: null, to: masked });
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true });
  });

  it('accompanies a change elsewhere: nothing is done that it can not say', async () => {
    let done = 0;
    const work = async () => {
      done += 1;
    };
    await store.records.audit.accompany(ACTION, atDay(8), work);
    expect(done).toBe(1);
    await sql`ALTER TABLE audit_log_ends RENAME TO elsewhere`.execute(store.records.db);
    await expect(store.records.audit.accompany(ACTION, atDay(8), work)).rejects.toThrow(StoreUnavailable);
    await sql`ALTER TABLE elsewhere RENAME TO audit_log_ends`.execute(store.records.db);
    expect(done).toBe(1);
  });

  it.each([
    ['store_unavailable', new StoreUnavailable('redis', undefined)],
    ['internal_error', new Error('failed halfway')],
  ])('says of a change elsewhere that failed so in a second entry: %s', async (outcome, fault) => {
    const before = await store.records.audit.count({});
    const failing = () => Promise.reject(fault);
    await expect(store.records.audit.accompany(ACTION, atDay(9), failing)).rejects.toThrow(fault);
    expect(await store.records.audit.list({}, { limit: 2 })).toMatchObject([
      { outcome, atMs: atDay(9).atMs },
      { outcome: 'success', atMs: atDay(9).atMs },
    ]);
    expect(await store.records.audit.count({})).toBe(before + 2);
  });

  it('verifies while it is written and pruned', async () => {
    const writes = Array.from({ length: 20 }, (_, n) => store.records.audit.record(ACTION, atDay(200 + n)));
    const reports = await Promise.all([
      ...Array.from({ length: 5 }, () => store.records.audit.verify()),
      store.records.audit.prune(START_MS + 205 * DAY_MS, 0).then(() => store.records.audit.verify()),
    ]);
    await Promise.all(writes);
    for (const report of reports) expect(report).toMatchObject({ isValid: true });
    expect(await store.records.audit.verify()).toMatchObject({ isValid: true });
  });

  it('keeps what is current where the clock of a replica is a year ahead of the store', async () => {
    const nowMs = Date.now();
    await store.records.audit.record(ACTION, sampleChange({ atMs: nowMs }));
    const current = await sequences({ fromMs: nowMs });
    await store.records.audit.prune(nowMs + 366 * DAY_MS, 365 * DAY_MS);
    expect(await sequences({ fromMs: nowMs })).toEqual(current);
  });
});
