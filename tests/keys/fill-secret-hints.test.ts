import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { fillSecretHints } from '../../src/keys/secrets/fill-secret-hints.ts';
import { SecretVault } from '../../src/keys/secrets/secret-vault.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { ADVISORY_LOCKS } from '../../src/storage/postgres/advisory-locks.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { createEmbeddedRecords, createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, sampleKey } from '../support/sample-records.ts';

const NEVER = new AbortController().signal;
const SECRET = 'tg_Ab3dEfGhIjKlMnOpQrStUvWxYz01239xYz';
const vault = new SecretVault([randomBytes(32)], systemRandom);

describe.each([
  ['Postgres', createPostgresRecords],
  ['the embedded store', createEmbeddedRecords],
])('filling in the hints of secrets in %s', (_name, create) => {
  let store: TestRecords;
  beforeAll(async () => {
    store = await create();
  });
  afterEach(() => sql`DELETE FROM consumer_keys`.execute(store.records.db));
  afterAll(() => store.remove());

  /** Makes a key as a version made it that kept no hints. */
  async function makeKey(fields: Parameters<typeof sampleKey>[0] = {}): Promise<string> {
    const key = sampleKey({ ...fields, secretHint: null });
    const sealedSecret = fields.sealedSecret === null ? null : vault.seal(key.id, SECRET);
    await store.records.keys.insert({ ...key, sealedSecret, ...fields, secretHint: null }, sampleChange());
    return key.id;
  }

  const keyOf = async (id: string) => (await store.records.keys.find(id))?.key;

  it('gives each key whose secret is kept its hint, and changes nothing else', async () => {
    const generated = await makeKey();
    const given = await makeKey({ secretOrigin: 'given' });
    const before = await keyOf(generated);
    await fillSecretHints(store.records.hintlessKeys, vault, NEVER);
    expect(await keyOf(generated)).toEqual({ ...before, secretHint: 'tg_Ab3d…9xYz' });
    expect((await keyOf(given))?.secretHint).toBe('tg_Ab3…xYz');
  });

  it('gives none to keys whose secret is not kept, or sealed with another key', async () => {
    const unkept = await makeKey({ sealedSecret: null });
    const hashed = await makeKey({ sealedSecret: null, secretOrigin: 'hashed' });
    const foreign = await makeKey({ sealedSecret: randomBytes(69) });
    const readable = await makeKey();
    await fillSecretHints(store.records.hintlessKeys, vault, NEVER);
    for (const id of [unkept, hashed, foreign]) expect((await keyOf(id))?.secretHint).toBeNull();
    expect((await keyOf(readable))?.secretHint).toBe('tg_Ab3d…9xYz');
  });

  it('goes through as many keys as there are, in steps', async () => {
    const ids: string[] = [];
    for (let made = 0; made < 5; made += 1) ids.push(await makeKey());
    const steps: (string | undefined)[] = [];
    let last: string | undefined;
    do {
      last = await store.records.hintlessKeys.fill(last, 2, () => 'hint');
      steps.push(last);
    } while (last !== undefined);
    expect(steps).toEqual([ids[1], ids[3], undefined]);
    for (const id of ids) expect((await keyOf(id))?.secretHint).toBe('hint');
  });
});

describe('filling in the hints of secrets', () => {
  let store: TestRecords;
  let other: Records;
  let id: string;
  beforeEach(async () => {
    store = await createPostgresRecords();
    other = await store.reopen('default');
    const key = sampleKey({ secretHint: null });
    id = key.id;
    await store.records.keys.insert(key, sampleChange());
  });
  afterEach(async () => {
    await other.close();
    await store.remove();
  });

  const hintOf = async () => (await store.records.keys.find(id))?.key.secretHint;

  it('is left to another replica that does it already', async () => {
    const { hintlessKeys } = store.records;
    await other.db.transaction().execute(async (trx) => {
      await sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.secretHints})`.execute(trx);
      expect(await hintlessKeys.fill(undefined, 1, () => 'ours')).toBeUndefined();
      expect(await hintOf()).toBeNull();
    });
    expect(await hintlessKeys.fill(undefined, 1, () => 'ours')).toBe(id);
    expect(await hintOf()).toBe('ours');
  });

  it('goes on while a configuration is applied', async () => {
    await other.db.transaction().execute(async (trx) => {
      await sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.configurations})`.execute(trx);
      expect(await store.records.hintlessKeys.fill(undefined, 1, () => 'hint')).toBe(id);
    });
    expect(await hintOf()).toBe('hint');
  });
});
