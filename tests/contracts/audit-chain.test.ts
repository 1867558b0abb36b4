import { createHash, randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type RawBuilder, sql } from 'kysely';
import { AuditChain, entryHash } from '../../src/audit/audit-chain.ts';
import type { AuditEntry, AuditedAction } from '../../src/audit/audit-entry.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { entryOfRow } from '../../src/storage/postgres/audit/audit-log-tables.ts';
import { AuditedChanges } from '../../src/storage/postgres/audit/audited-changes.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { createPostgresRecords, RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange } from '../support/sample-records.ts';
import { TEST_VAULT } from '../support/test-vault.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2025, 0, 1);
const ACTION: AuditedAction = {
  action: 'limits.reset',
  target: { type: 'key', id: 'key_a', name: 'a key', tags: ['eu'] },
  changes: { limitId: { from: null, to: 'main' } },
};
const HASH_OF_ENTRY = (sequence: number) => sql`(SELECT hash FROM audit_log WHERE sequence = ${sequence})`;

type Hash = (previousHash: Uint8Array, entry: AuditEntry) => Buffer;

/** The hash that anybody can calculate. */
const plainHash: Hash = (previousHash, entry) =>
  createHash('sha256').update(previousHash).update(JSON.stringify(entry)).digest();
/** The hash of a person who has this encryption key. */
const hashWith =
  (vault: SecretVault): Hash =>
  (previousHash, entry) =>
    new AuditChain(vault).hash(previousHash, entry);

describe.each(RECORD_STORES)('a person who can write to the audit log in %s', (_name, create) => {
  let store: TestRecords;
  let records: Records;
  beforeAll(async () => {
    store = await create();
    records = store.records;
  });
  afterAll(() => store.remove());

  /** Five entries in a new log, one a day. */
  beforeEach(async () => {
    // As the runbook starts a new log.
    await change(sql`TRUNCATE audit_log, audit_log_keys`);
    await change(sql`
      UPDATE audit_log_ends SET last_sequence = 0, pruned_sequence = 0, last_mac = '', pruned_mac = '',
        last_hash = decode(repeat('00', 32), 'hex'), pruned_hash = decode(repeat('00', 32), 'hex')`);
    await change(sql`UPDATE audit_log_ends SET reported_at = NULL`);
    await write(5);
  });

  const change = async (statement: RawBuilder<unknown>) => void (await statement.execute(records.db));
  const verify = (expected?: { count: number; hash: string }) => records.audit.verify(expected);
  const head = async () => (await verify()).head;
  async function write(entries: number, requestId = 'r-1'): Promise<void> {
    for (let day = 0; day < entries; day += 1)
      await records.audit.record(ACTION, sampleChange({ atMs: START_MS + day * DAY_MS, requestId }));
  }
  const rows = () => records.db.selectFrom('audit_log').selectAll().orderBy('sequence').execute();

  /** Rewrites the entries from `first` on, with suitable links between them and a suitable end. */
  async function rewrite(first: number, hash: Hash): Promise<void> {
    const all = await rows();
    let previous: Uint8Array =
      all.find(({ sequence }) => sequence === first)?.previous_hash ?? Buffer.alloc(0);
    for (const row of all.filter(({ sequence }) => sequence >= first)) {
      const link = previous;
      previous = hash(link, { ...entryOfRow(row), address: '192.0.2.1' });
      await change(
        sql`UPDATE audit_log SET address = '192.0.2.1', previous_hash = ${link}, hash = ${previous} WHERE sequence = ${row.sequence}`,
      );
    }
    await change(sql`UPDATE audit_log_ends SET last_hash = ${previous}`);
  }

  it.each([
    ['changed', sql`UPDATE audit_log SET address = '192.0.2.1' WHERE sequence = 3`, 'changed', 3],
    [
      'made of an unknown key',
      sql`UPDATE audit_log SET key_id = '\\x01020304' WHERE sequence = 3`,
      'unknown_key',
      3,
    ],
    ['removed in the middle', sql`DELETE FROM audit_log WHERE sequence = 3`, 'missing', 3],
    ['removed at the beginning', sql`DELETE FROM audit_log WHERE sequence <= 2`, 'missing', 1],
    ['removed at the end', sql`DELETE FROM audit_log WHERE sequence = 5`, 'end', 5],
  ] as const)('can not have an entry %s unnoticed', async (_what, statement, problem, firstBroken) => {
    await change(statement);
    const report = await verify();
    expect(report).toMatchObject({ isValid: false, problem, firstBroken, entries: firstBroken - 1 });
  });

  it('can not close the gap of a removed entry', async () => {
    await change(sql`DELETE FROM audit_log WHERE sequence = 3`);
    for (const later of [4, 5])
      await change(sql`UPDATE audit_log SET sequence = ${later - 1} WHERE sequence = ${later}`);
    await change(sql`UPDATE audit_log SET previous_hash = ${HASH_OF_ENTRY(2)} WHERE sequence = 3`);
    await change(sql`UPDATE audit_log_ends SET last_sequence = 4`);
    expect(await verify()).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 3 });
  });

  it('can not exchange two entries', async () => {
    for (const [from, to] of [
      [3, -1],
      [4, 3],
      [-1, 4],
    ])
      await change(sql`UPDATE audit_log SET sequence = ${to} WHERE sequence = ${from}`);
    expect(await verify()).toMatchObject({ isValid: false, firstBroken: 3 });
    const links = [HASH_OF_ENTRY(2), HASH_OF_ENTRY(3)];
    for (const [index, link] of links.entries())
      await change(sql`UPDATE audit_log SET previous_hash = ${link} WHERE sequence = ${3 + index}`);
    expect(await verify()).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 3 });
  });

  it.each([1, 3])('can not rewrite all entries from %i on with a plain hash', async (first) => {
    await rewrite(first, plainHash);
    expect(await verify()).toMatchObject({ isValid: false, problem: 'changed', firstBroken: first });
  });

  it('can not rewrite an entry and hide it behind its own new hash, even with the key of entries', async () => {
    const [row] = (await rows()).slice(2);
    const [key] = TEST_VAULT.chainKeys;
    if (row === undefined || key === undefined) throw new Error('no third entry, or no key');
    const hash = entryHash(key.entries, row.previous_hash, { ...entryOfRow(row), address: '192.0.2.1' });
    await change(sql`UPDATE audit_log SET address = '192.0.2.1', hash = ${hash} WHERE sequence = 3`);
    await change(sql`UPDATE audit_log SET previous_hash = ${hash} WHERE sequence = 4`);
    expect(await verify()).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 4 });
  });

  describe('and cuts it off at the end, with an end that suits what is left,', () => {
    let noted: { count: number; hash: string };
    beforeEach(async () => {
      noted = await head();
    });
    const cutOff = async () => {
      await change(sql`UPDATE audit_log_ends SET last_sequence = 4, last_hash = ${HASH_OF_ENTRY(4)}`);
      await change(sql`DELETE FROM audit_log WHERE sequence = 5`);
    };

    it('is noticed, because the end is marked', async () => {
      await cutOff();
      expect(await verify()).toMatchObject({ isValid: false, problem: 'end', firstBroken: 5, entries: 4 });
      await change(sql`UPDATE audit_log_ends SET last_mac = ''`);
      expect(await verify()).toMatchObject({ isValid: false, problem: 'end' });
    });

    it('is noticed also after the gateway has written the next entries', async () => {
      await cutOff();
      await write(2);
      expect(await verify()).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 5 });
      await change(sql`UPDATE audit_log SET previous_hash = ${HASH_OF_ENTRY(4)} WHERE sequence = 5`);
      expect(await verify()).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 5 });
    });

    it('is noticed by a head that was noted, even with an end that was kept from before', async () => {
      const kept = await records.db.selectFrom('audit_log_ends').selectAll().executeTakeFirstOrThrow();
      await write(3);
      const later = await head();
      await change(sql`DELETE FROM audit_log WHERE sequence > 5`);
      await records.db.updateTable('audit_log_ends').set(kept).execute();
      expect(await verify()).toMatchObject({ isValid: true, entries: 5 });
      expect(await verify(noted)).toMatchObject({ isValid: true, expectation: 'met' });
      expect(await verify(later)).toMatchObject({
        isValid: false,
        problem: undefined,
        expectation: 'cut_off',
      });
      // As many entries again, but others.
      await write(4, 'r-2');
      expect(await verify(later)).toMatchObject({ isValid: false, expectation: 'other_hash' });
      expect(await verify(noted)).toMatchObject({ isValid: true, expectation: 'met' });
    });
  });

  it('can not pass off entries as removed for their age', async () => {
    await change(sql`UPDATE audit_log_ends SET pruned_sequence = 2, pruned_hash = ${HASH_OF_ENTRY(2)}`);
    await change(sql`DELETE FROM audit_log WHERE sequence <= 2`);
    expect(await verify()).toMatchObject({
      isValid: false,
      problem: 'beginning',
      firstBroken: 3,
      entries: 0,
    });
    await expect(records.audit.prune(START_MS + 4 * DAY_MS, 0)).rejects.toThrow(
      'was changed outside of Tollgate',
    );
    expect(await verify()).toMatchObject({ isValid: false, problem: 'beginning' });
  });

  it('can not make retention remove an entry by an older time', async () => {
    await change(sql`UPDATE audit_log SET at = at - interval '30 days' WHERE sequence <= 2`);
    await expect(records.audit.prune(START_MS - DAY_MS, 0)).rejects.toThrow(
      'aud_0000000000000001 was changed outside of Tollgate: nothing is removed from the audit log',
    );
    expect(await rows()).toHaveLength(5);
  });

  it('leaves retention at work, and heads that were noted behind what it removed', async () => {
    const noted = await head();
    await write(1);
    expect(await records.audit.prune(START_MS + 3 * DAY_MS, 0)).toBe(3);
    expect(await verify(noted)).toMatchObject({ isValid: true, entries: 3, expectation: 'met' });
    const [oldest] = await rows();
    const removed = { count: 3, hash: Buffer.from(oldest?.previous_hash ?? []).toString('hex') };
    expect(await verify(removed)).toMatchObject({ isValid: true, expectation: 'met' });
    expect(await verify({ ...removed, count: 2 })).toMatchObject({ isValid: false, expectation: 'expired' });
    expect(await verify({ ...removed, count: 4 })).toMatchObject({
      isValid: false,
      expectation: 'other_hash',
    });
  });

  it('sees entries without a key named as such, which are neither mended nor removed', async () => {
    await change(sql`UPDATE audit_log SET key_id = '\\x00000000'`);
    await change(sql`UPDATE audit_log_ends SET last_mac = ''`);
    await rewrite(1, plainHash);
    expect(await verify()).toMatchObject({ isValid: false, problem: 'unknown_key', firstBroken: 1 });
    await write(1);
    expect(await verify()).toMatchObject({ isValid: false, problem: 'unknown_key', firstBroken: 1 });
    await expect(records.audit.prune(START_MS + 9 * DAY_MS, 0)).rejects.toThrow('nothing is removed');
  });

  it('finds a change with thousands of entries in one chain', async () => {
    const changes = new AuditedChanges(records.db, new AuditChain(TEST_VAULT));
    await changes.make(sampleChange(), async (_trx, note) => {
      for (let n = 0; n < 2000; n += 1) note(ACTION);
    });
    expect(await verify()).toMatchObject({ isValid: true, entries: 2005 });
  });

  it('sees the head once a day, over all replicas', async () => {
    const { count, hash } = await head();
    const last = START_MS + 10 * DAY_MS;
    expect(await records.audit.takeDailyHead(last)).toEqual({ count, hash, atMs: START_MS + 4 * DAY_MS });
    expect(records.audit.lastHead).toMatchObject({ count: 5 });
    expect(await records.audit.takeDailyHead(last + DAY_MS - 1)).toBeUndefined();
    expect(await records.audit.takeDailyHead(last + DAY_MS)).toMatchObject({ count: 5 });
    // A replica whose clock was far ahead does not end the reports.
    expect(await records.audit.takeDailyHead(last + 900 * DAY_MS)).toMatchObject({ count: 5 });
    expect(await records.audit.takeDailyHead(last + 2 * DAY_MS)).toMatchObject({ count: 5 });
  });
});

describe('the encryption keys of the audit log', () => {
  const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
  const vault = (...keys: Buffer[]) => new SecretVault(keys, systemRandom);
  let store: TestRecords;
  const opened: Records[] = [];
  beforeEach(async () => {
    store = await createPostgresRecords();
  });
  afterEach(async () => {
    for (const records of opened.splice(0)) await records.close();
    await store.remove();
  });

  async function open(...keys: Buffer[]): Promise<Records> {
    const records = await store.reopen(null, vault(...keys));
    opened.push(records);
    return records;
  }

  const write = (records: Records) => records.audit.record(ACTION, sampleChange({ atMs: START_MS }));
  const verify = (records: Records) => records.audit.verify();

  it('has no mark only before its first entry', () => {
    const chain = new AuditChain(TEST_VAULT);
    const none = Buffer.alloc(0);
    const start = Buffer.alloc(32);
    expect(chain.isMarked('last', { sequence: 0, hash: start }, none)).toBe(true);
    expect(chain.isMarked('last', { sequence: 0, hash: Buffer.alloc(32, 1) }, none)).toBe(false);
    expect(chain.isMarked('last', { sequence: 5, hash: start }, none)).toBe(false);
    const mark = chain.markEnd('last', { sequence: 5, hash: start });
    expect(chain.isMarked('last', { sequence: 0, hash: start }, mark)).toBe(false);
  });

  it('are needed for every entry', () => {
    expect(() => new AuditChain(null).keyId).toThrow('A program without ENCRYPTION_KEY used the audit log.');
  });

  it('verify what they wrote for as long as they are in ENCRYPTION_KEY', async () => {
    const [old, both, other] = [await open(oldKey, newKey), await open(newKey, oldKey), await open(newKey)];
    for (const records of [old, both, old]) await write(records);
    expect(await verify(both)).toMatchObject({ isValid: true, entries: 3 });
    expect(await verify(other)).toMatchObject({ isValid: false, problem: 'unknown_key', firstBroken: 1 });
  });

  it('are named by a retention that lacks one of them, before and after it has removed entries', async () => {
    const [old, other] = [await open(oldKey), await open(newKey)];
    for (let entries = 0; entries < 2; entries += 1) await write(old);
    const lacksKey = (id: string) =>
      `${id} was changed outside of Tollgate, or ENCRYPTION_KEY lacks the key that it was written under: nothing is removed from the audit log`;
    const prune = (records: Records) => records.audit.prune(START_MS + DAY_MS, 0);
    await expect(prune(other)).rejects.toThrow(lacksKey('aud_0000000000000001'));
    expect(await prune(old)).toBe(2);
    await write(old);
    await expect(prune(other)).rejects.toThrow(lacksKey('aud_0000000000000003'));
  });

  it('can be taken out of it after they were retired, with heads unchanged', async () => {
    const [old, both, current] = [await open(oldKey), await open(newKey, oldKey), await open(newKey)];
    for (const records of [old, old, both]) await write(records);
    await old.audit.prune(START_MS, 0);
    const { head } = await verify(both);
    expect(await both.audit.retireKeys()).toBe(1);
    expect(await both.audit.retireKeys()).toBe(1);
    expect(await current.audit.verify(head)).toMatchObject({ isValid: true, entries: 3, expectation: 'met' });
    await write(current);
    expect(await verify(current)).toMatchObject({ isValid: true, entries: 4 });
    const newest = randomBytes(32);
    await (await open(newest, newKey)).audit.retireKeys();
    expect(await verify(await open(newest))).toMatchObject({ isValid: true, entries: 4 });
  });

  it('are those of a log whose end is theirs, or of one that was retired under them', async () => {
    const [old, both, current] = [await open(oldKey), await open(newKey, oldKey), await open(newKey)];
    const whoKnowsTheEnd = () =>
      Promise.all([old, both, current].map((records) => records.audit.hasKnownEnd()));
    expect(await whoKnowsTheEnd()).toEqual([true, true, true]);
    await write(old);
    expect(await whoKnowsTheEnd()).toEqual([true, true, false]);
    await both.audit.retireKeys();
    expect(await whoKnowsTheEnd()).toEqual([false, true, true]);
    await write(old);
    expect(await whoKnowsTheEnd()).toEqual([true, true, true]);
    expect(await (await open(randomBytes(32))).audit.hasKnownEnd()).toBe(false);
  });

  it('verify no entry from after they were retired, nor other entries from before', async () => {
    const [old, both, current] = [await open(oldKey), await open(newKey, oldKey), await open(newKey)];
    await write(old);
    await write(old);
    await both.audit.retireKeys();
    await write(current);
    const before = await store.records.db.selectFrom('audit_log').selectAll().orderBy('sequence').execute();
    // A person with the old key, and with the end as it was, goes on under the old key.
    await write(old);
    expect(await verify(current)).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 4 });
    await sql`DELETE FROM audit_log`.execute(store.records.db);
    let link: Uint8Array = Buffer.alloc(32);
    for (const row of before.slice(0, 2)) {
      const hash = hashWith(vault(oldKey))(link, { ...entryOfRow(row), address: '192.0.2.1' });
      const forged = { ...row, address: '192.0.2.1', previous_hash: link, hash };
      await store.records.db.insertInto('audit_log').values(forged).execute();
      link = hash;
    }
    expect(await verify(current)).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 2 });
  });

  it('are not taken from a row that somebody has written', async () => {
    const [old, both, current] = [await open(oldKey), await open(newKey, oldKey), await open(newKey)];
    await write(old);
    await both.audit.retireKeys();
    await sql`UPDATE audit_log_keys SET sealed = sealed || '\\x00'`.execute(store.records.db);
    expect(await verify(current)).toMatchObject({ isValid: false, problem: 'unknown_key', firstBroken: 1 });
  });

  it('leave an end that somebody changed as it is', async () => {
    const both = await open(newKey, oldKey);
    await write(both);
    await write(both);
    await sql`UPDATE audit_log_ends SET last_sequence = 1, last_hash = ${HASH_OF_ENTRY(1)}`.execute(
      store.records.db,
    );
    await both.audit.retireKeys();
    expect(await verify(both)).toMatchObject({ isValid: false, problem: 'end', firstBroken: 2 });
  });
});
