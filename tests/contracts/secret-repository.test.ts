import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import type { ChangeContext } from '../../src/audit/change-context.ts';
import type { NewConsumerKey, UpdatedKey } from '../../src/keys/key-repository.ts';
import type { SecretReplacement } from '../../src/keys/secrets/secret-repository.ts';
import type { SecretMatch, StoredSecret } from '../../src/keys/secrets/stored-secret.ts';
import { deleteKey, updateKey } from '../support/one-key.ts';
import { createPostgresRecords, RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey, storeKey } from '../support/sample-records.ts';
import { until } from '../support/until.ts';
import { waitingForLocks } from '../support/waiting-for-locks.ts';

const AT_MS = Date.UTC(2025, 5, 1, 0, 0, 0, 1);
const UNTIL_MS = Date.UTC(2025, 5, 2);

describe.each(RECORD_STORES)('the secrets of keys in %s', (_name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterAll(() => store.remove());

  const inserted = (fields?: Partial<NewConsumerKey>) => storeKey(store.records, fields);

  function secret(): StoredSecret {
    const { secretOrigin, secretHint, lookup, digestLookup, sealedSecret, sealedDigest } = sampleKey();
    return { secretOrigin, secretHint, lookup, digestLookup, sealedSecret, sealedDigest };
  }

  function matchOf({ lookup, digestLookup }: StoredSecret): SecretMatch {
    return { lookups: [lookup], digestLookups: [digestLookup], isReserved: false };
  }

  function replacement(fields: Partial<SecretReplacement> = {}): SecretReplacement {
    return { secret: secret(), previousValidUntilMs: UNTIL_MS, ...fields };
  }

  function at(atMs = AT_MS): ChangeContext {
    return sampleChange({ atMs });
  }

  async function rotated(
    keyId: string,
    { atMs, ...fields }: Partial<SecretReplacement> & { readonly atMs?: number } = {},
  ): Promise<UpdatedKey> {
    const key = await store.records.secrets.rotate(keyId, replacement(fields), at(atMs));
    if (typeof key === 'string') throw new Error(key);
    return key;
  }

  /** The version of the secret that has a look-up value, by key. */
  async function found(lookup: Buffer): Promise<readonly unknown[]> {
    const keys = await store.records.keys.findSnapshotsByLookup([lookup]);
    return keys.map(({ secretVersion, snapshot }) => ({ secretVersion, snapshot }));
  }

  it('finds a key by both of its secrets while it is rotated, and tells them apart', async () => {
    const { id, lookup } = await inserted();
    const next = secret();
    const { key, version } = await rotated(id, { secret: next });
    expect(version).toBe('2.1');
    expect(key).toMatchObject({
      updatedAtMs: AT_MS,
      secretHint: next.secretHint,
      rotation: { startedAtMs: AT_MS, previousValidUntilMs: UNTIL_MS, previousLastUsedAtMs: null },
    });
    const snapshot = (await store.records.keys.find(id))?.snapshot;
    expect(snapshot).toMatchObject({
      secretVersion: 2,
      previousSecret: { version: 0, validUntilMs: UNTIL_MS },
    });
    expect(await found(next.lookup)).toEqual([{ secretVersion: 2, snapshot }]);
    expect(await found(lookup)).toEqual([{ secretVersion: 0, snapshot }]);
    expect((await store.records.keys.find(id))?.sealedSecret).toEqual(next.sealedSecret);
    expect(await store.records.secrets.findRotation(id, [])).toEqual(key.rotation);
  });

  it('raises the version of imports with each secret from outside, which replicas look for', async () => {
    const versionOfImports = async () => (await store.records.secrets.importedSecrets()).version;
    const before = await versionOfImports();
    const key = sampleKey();
    const options = { onConflict: 'fail', action: 'key.import' } as const;
    await store.records.secrets.import([{ key, match: matchOf(key) }], options, sampleChange());
    expect(await versionOfImports()).toBe(before + 1);
    const given = secret();
    await rotated(key.id, { secret: given, match: matchOf(given) });
    expect(await versionOfImports()).toBe(before + 2);
    await rotated((await inserted()).id);
    expect(await versionOfImports()).toBe(before + 2);
  });

  it('keeps the expiry of a rotated key, or replaces it', async () => {
    const { id } = await inserted({ expiresAtMs: UNTIL_MS });
    expect((await rotated(id, { previousValidUntilMs: AT_MS })).key.expiresAtMs).toBe(UNTIL_MS);
    expect(
      (await rotated(id, { previousValidUntilMs: AT_MS, expiresAtMs: null })).key.expiresAtMs,
    ).toBeNull();
  });

  it('keeps no secret from before when there is no grace', async () => {
    const { id, lookup } = await inserted();
    expect((await rotated(id, { previousValidUntilMs: AT_MS })).key.rotation).toBeNull();
    expect(await found(lookup)).toEqual([]);
    expect((await store.records.keys.find(id))?.snapshot.previousSecret).toBeNull();
  });

  it('gives a key no third secret, until the previous one is over', async () => {
    const { id, lookup } = await inserted();
    await rotated(id);
    expect(await store.records.secrets.rotate(id, replacement(), at(UNTIL_MS - 1))).toBe(
      'rotation_in_progress',
    );
    await rotated(id, { atMs: UNTIL_MS, previousValidUntilMs: UNTIL_MS + 1 });
    expect(await found(lookup)).toEqual([]);
  });

  it('gives one of many rotations at the same time its way', async () => {
    const { id, lookup } = await inserted();
    const replacements = Array.from({ length: 6 }, () => replacement());
    const results = await Promise.all(replacements.map((one) => store.records.secrets.rotate(id, one, at())));
    const won = replacements.filter((_one, index) => typeof results[index] !== 'string');
    expect(won).toHaveLength(1);
    expect(results.filter((result) => result === 'rotation_in_progress')).toHaveLength(5);
    expect(await found(lookup)).toHaveLength(1);
    for (const { secret: tried } of replacements)
      expect(await found(tried.lookup)).toHaveLength(won.some((one) => one.secret === tried) ? 1 : 0);
  });

  it.each(['new', 'previous'] as const)('leaves a key its %s secret only', async (keep) => {
    const before = await inserted();
    const next = secret();
    await rotated(before.id, { secret: next });
    const ended = await store.records.secrets.endRotation(before.id, keep, at(AT_MS + 1));
    const kept = keep === 'new' ? next : before;
    const dropped = keep === 'new' ? before : next;
    expect(ended).toMatchObject({
      version: '3.1',
      key: { rotation: null, updatedAtMs: AT_MS + 1, secretHint: kept.secretHint },
    });
    expect(await found(dropped.lookup)).toEqual([]);
    expect(await found(kept.lookup)).toMatchObject([{ secretVersion: keep === 'new' ? 2 : 0 }]);
    expect((await store.records.keys.find(before.id))?.sealedSecret).toEqual(kept.sealedSecret);
    // The version of a secret is never another one's.
    await rotated(before.id, { atMs: AT_MS + 2 });
    expect((await store.records.keys.find(before.id))?.snapshot.secretVersion).toBe(4);
  });

  it('ends no rotation that there is not, or that is over', async () => {
    const { id } = await inserted();
    expect(await store.records.secrets.endRotation(id, 'new', at())).toBe('no_rotation');
    await rotated(id);
    expect(await store.records.secrets.endRotation(id, 'previous', at(UNTIL_MS))).toBe('no_rotation');
  });

  it('says that there is no such key', async () => {
    expect(await store.records.secrets.rotate('key_none', replacement(), at())).toBe('key_not_found');
    expect(await store.records.secrets.endRotation('key_none', 'new', at())).toBe('key_not_found');
    expect(await store.records.secrets.findRotation('key_none', [])).toBe('key_not_found');
  });

  it('deletes both secrets with their key', async () => {
    const { id, lookup } = await inserted();
    const next = secret();
    await rotated(id, { secret: next });
    expect(await deleteKey(store.records.keys, id, at())).toBe(true);
    expect(await found(lookup)).toEqual([]);
    expect(await found(next.lookup)).toEqual([]);
  });

  it('keeps the latest use of a previous secret, and none of one that was replaced', async () => {
    const { id } = await inserted();
    const { secrets } = store.records;
    await rotated(id);
    const lastUsed = async () => {
      const rotation = await secrets.findRotation(id, []);
      return typeof rotation === 'string' ? rotation : rotation?.previousLastUsedAtMs;
    };
    await secrets.noteUses([{ keyId: id, secretVersion: 0, atMs: AT_MS + 20 }]);
    await secrets.noteUses([
      { keyId: id, secretVersion: 0, atMs: AT_MS + 10 },
      { keyId: id, secretVersion: 2, atMs: AT_MS + 30 },
      { keyId: 'key_none', secretVersion: 0, atMs: AT_MS + 30 },
    ]);
    expect(await lastUsed()).toBe(AT_MS + 20);
    await secrets.endRotation(id, 'new', at());
    await rotated(id);
    await secrets.noteUses([{ keyId: id, secretVersion: 0, atMs: AT_MS + 40 }]);
    expect(await lastUsed()).toBeNull();
  });

  it('shows the rotation of a key in the list and after an edit, and an edit ends none', async () => {
    const { id } = await inserted();
    const { key } = await rotated(id);
    const newest = { filter: { text: id }, sort: 'createdAt', order: 'desc', limit: 2 } as const;
    expect(await store.records.keyList.list(newest, AT_MS)).toEqual([key]);
    const updated = await updateKey(store.records.keys, id, { name: 'renamed' }, at());
    expect(updated).toMatchObject({ key: { name: 'renamed', rotation: key.rotation } });
    expect(await updateKey(store.records.keys, id, { name: 'renamed' }, at())).toEqual(updated);
  });
});

describe('an import of keys that waits for another one', () => {
  it('does not hold up a change of their plan', async () => {
    const store = await createPostgresRecords();
    const { db, plans, secrets } = store.records;
    const earlier = await db.startTransaction().execute();
    try {
      await sql`SELECT FROM secret_imports FOR UPDATE`.execute(earlier);
      const key = sampleKey({ planId: 'default' });
      const match = { lookups: [key.lookup], digestLookups: [key.digestLookup], isReserved: false };
      const options = { onConflict: 'fail', action: 'key.import' } as const;
      const imported = secrets.import([{ key, match }], options, sampleChange());
      await until(async () => (await waitingForLocks(db)) === 1);
      expect(await plans.update('default', { limit: 7 }, sampleChange())).toMatchObject({ limit: 7 });
      await earlier.commit().execute();
      expect(await imported).toEqual([undefined]);
    } finally {
      if (!earlier.isCommitted) await earlier.rollback().execute();
      await store.remove();
    }
  });
});
