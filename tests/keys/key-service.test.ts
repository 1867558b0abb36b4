import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { KeyNotFound, PlanNotFound, StoreUnavailable } from '../../src/errors.ts';
import { keyIdMaker } from '../../src/keys/key-id.ts';
import { KeyService } from '../../src/keys/key-service.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { isWellFormedSecret } from '../../src/secrets/secret-format.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { RecordingVersions } from '../support/recording-versions.ts';
import { createPostgresRecords, type TestRecords } from '../support/records.ts';
import { sampleChange, samplePlan } from '../support/sample-records.ts';
import { actDuring } from '../support/waiting-for-locks.ts';

const START_MS = Date.UTC(2025, 0, 1);
const vault = new SecretVault([Buffer.alloc(32, 1)], systemRandom);
const ABSENT = 'key_00000000000000000000000000';

describe('the service of keys', () => {
  let store: TestRecords;
  let versions: RecordingVersions;
  let clock: ManualClock;
  beforeAll(async () => {
    store = await createPostgresRecords();
  });
  afterAll(() => store.remove());
  beforeEach(() => {
    versions = new RecordingVersions();
    clock = new ManualClock(START_MS);
  });

  const now = () => sampleChange({ atMs: clock.nowMs() });

  function service(reveal: 'always' | 'once' = 'always', repository = store.records.keys): KeyService {
    return new KeyService({
      repository,
      keyList: store.records.keyList,
      versions,
      vault,
      clock,
      random: systemRandom,
      makeId: keyIdMaker(clock, systemRandom),
      keyPrefix: 'tg',
      reveal,
    });
  }

  /** As the detail response has it. */
  async function detail(keyId: string, keys: KeyService) {
    const stored = await keys.record(keyId, []);
    const { key, snapshot } = stored;
    return { key, secret: keys.openSecret(stored) ?? keys.maskedSecret, snapshot };
  }

  async function storedVersion(keyId: string): Promise<string | undefined> {
    return (await store.records.keys.find(keyId))?.snapshot.version;
  }

  it('retires no key that its deleter has lost sight of', async () => {
    const { key } = await service().create({ name: 'moved on', tags: ['eu'] }, now());
    const { db } = store.records;
    const removal = await actDuring(db, sql`UPDATE consumer_keys SET tags = '{}' WHERE id = ${key.id}`, () =>
      service()
        .remove(key.id, { ...now(), onlyTags: ['eu'] })
        .catch((error: unknown) => error),
    );
    expect(removal).toBeInstanceOf(KeyNotFound);
    expect(versions.steps.map(({ step }) => step)).toEqual(['markStale']);
  });

  it('makes a key whose secret finds it and whose detail shows it', async () => {
    const { key, secret } = await service().create({ name: 'first' }, now());
    expect(key).toEqual({
      id: expect.stringMatching(/^key_[0-9A-Z]{26}$/),
      name: 'first',
      lastUsedAtMs: null,
      createdAtMs: START_MS,
      updatedAtMs: START_MS,
      version: 1,
      enabled: true,
      expiresAtMs: null,
      planId: null,
      externalId: null,
      tags: [],
      metadata: null,
      overrides: {},
      allowedIps: null,
      allowedOrigins: null,
      selfService: [],
      managedBy: null,
      secretHint: `${secret.slice(0, 7)}…${secret.slice(-4)}`,
      rotation: null,
    });
    expect(isWellFormedSecret(secret)).toBe(true);
    const [found] = await store.records.keys.findSnapshotsByLookup(vault.lookups(secret));
    expect(await detail(key.id, service())).toEqual({ key, secret, snapshot: found?.snapshot });
    expect(versions.steps).toEqual([]);
  });

  it('keeps an expiry that is given', async () => {
    const { key } = await service().create({ name: 'short', expiresAtMs: START_MS + 1000 }, now());
    expect((await detail(key.id, service())).snapshot.expiresAtMs).toBe(START_MS + 1000);
  });

  it('shows asterisks after creation and stores no sealed form with SECRET_REVEAL=once', async () => {
    const { key, secret } = await service('once').create({ name: 'once' }, now());
    expect(secret).toMatch(/^tg_\w{36}$/);
    expect((await detail(key.id, service('once'))).secret).toBe(`tg_${'*'.repeat(36)}`);
    expect((await detail(key.id, service('always'))).secret).toBe(`tg_${'*'.repeat(36)}`);
    expect((await store.records.keys.find(key.id))?.sealedSecret).toBeNull();
    const older = await service('always').create({ name: 'made before' }, now());
    expect((await detail(older.key.id, service('once'))).secret).toBe(`tg_${'*'.repeat(36)}`);
  });

  it('says where the next page begins, and nothing on the last page', async () => {
    const keys = service();
    // Later than any other key in this store.
    clock.advance(3_600_000);
    const createdFromMs = clock.nowMs();
    const ids: string[] = [];
    for (const move of [0, 0, 5, 10]) {
      clock.advance(move);
      ids.unshift((await keys.create({ name: 'one of many' }, now())).key.id);
    }
    const list = { filter: { createdFromMs }, sort: 'createdAt', order: 'desc' } as const;
    const first = await keys.page({ ...list, limit: 3 });
    expect(first.next).toBeDefined();
    const second = await keys.page({ ...list, limit: 3, ...(first.next && { after: first.next }) });
    expect([...first.keys, ...second.keys].map(({ id }) => id)).toEqual(ids);
    expect(second).not.toHaveProperty('next');
    expect(await keys.page({ ...list, limit: 4 })).not.toHaveProperty('next');
    expect(await keys.count(list.filter)).toBe(4);
  });

  it('shows no snapshots of keys where one of them can not be read', async () => {
    const { key } = await service().create({ name: 'without a plan' }, now());
    expect(await service().snapshots([key.id, ABSENT])).toMatchObject([{ keyId: key.id }]);
    const failure = new StoreUnavailable('postgres', new Error('the default plan is gone'));
    const findSnapshotsOrErrors = async () => new Map([[key.id, failure]]);
    const failing = service('always', { ...store.records.keys, findSnapshotsOrErrors });
    await expect(failing.snapshots([key.id])).rejects.toBe(failure);
  });

  it('announces a change before it writes and settles it after', async () => {
    const { key } = await service().create({ name: 'old name' }, now());
    versions.look = () => storedVersion(key.id);
    clock.advance(1000);
    const updated = await service().update(key.id, { name: 'new name', enabled: false }, now());
    expect(updated).toEqual({
      ...key,
      name: 'new name',
      enabled: false,
      updatedAtMs: START_MS + 1000,
      version: 2,
    });
    expect(versions.steps).toEqual([
      { step: 'markStale', keys: [key.id], stored: '1.1' },
      { step: 'publishVersion', keys: [key.id], versions: ['2.1'], stored: '2.1' },
    ]);
  });

  it('announces a binding before it writes and settles it after', async () => {
    const { key } = await service().create({ name: 'bound' }, now());
    const plan = samplePlan();
    await store.records.plans.insert(plan, now());
    versions.look = () => storedVersion(key.id);
    expect(await service().bind(key.id, plan.id, now())).toMatchObject({
      keyId: key.id,
      plan: { id: plan.id },
    });
    expect(versions.steps).toEqual([
      { step: 'markStale', keys: [key.id], stored: '1.1' },
      { step: 'publishVersion', keys: [key.id], versions: ['2.1'], stored: '2.1' },
    ]);
  });

  it('announces a deletion, deletes, retires, and erases the usage, in this order', async () => {
    const { key, secret } = await service().create({ name: 'gone soon' }, now());
    versions.look = () => storedVersion(key.id);
    await service().remove(key.id, now());
    expect(versions.steps).toEqual([
      { step: 'markStale', keys: [key.id], stored: '1.1' },
      { step: 'retire', keys: [key.id], windowNames: ['main:3600000'], stored: undefined },
    ]);
    expect(await store.records.keys.findSnapshotsByLookup(vault.lookups(secret))).toEqual([]);
    await expect(service().remove(key.id, now())).rejects.toThrow(KeyNotFound);
  });

  it('completes a deletion that failed after the row was gone, as an unknown key', async () => {
    const { key } = await service().create({ name: 'half gone' }, now());
    versions.failing = { step: 'retire', error: new StoreUnavailable('redis', undefined) };
    await expect(service().remove(key.id, now())).rejects.toThrow(StoreUnavailable);
    versions.failing = undefined;
    versions.steps.length = 0;
    await expect(service().remove(key.id, now())).rejects.toThrow(KeyNotFound);
    expect(versions.steps.map(({ step }) => step)).toEqual(['markStale', 'retire']);
  });

  it('writes nothing when the change can not be announced', async () => {
    const { key } = await service().create({ name: 'unchanged' }, now());
    versions.failing = { step: 'markStale', error: new StoreUnavailable('redis', undefined) };
    await expect(service().update(key.id, { enabled: false }, now())).rejects.toThrow(StoreUnavailable);
    await expect(service().bind(key.id, 'default', now())).rejects.toThrow(StoreUnavailable);
    await expect(service().remove(key.id, now())).rejects.toThrow(StoreUnavailable);
    expect(await storedVersion(key.id)).toBe('1.1');
  });

  it.each([ABSENT, 'key_none', '', '\0', '%00'])(
    'knows no key "%s", and announces no change of it',
    async (keyId) => {
      await expect(detail(keyId, service())).rejects.toThrow(KeyNotFound);
      await expect(service().update(keyId, { enabled: false }, now())).rejects.toThrow(KeyNotFound);
      await expect(service().bind(keyId, 'default', now())).rejects.toThrow(KeyNotFound);
      expect(versions.steps).toEqual([]);
      await expect(service().remove(keyId, now())).rejects.toThrow(KeyNotFound);
    },
  );

  it('binds no plan that does not exist, and announces nothing for it', async () => {
    const { key } = await service().create({ name: 'steady' }, now());
    await expect(service().bind(key.id, 'none', now())).rejects.toThrow(PlanNotFound);
    expect(versions.steps).toEqual([]);
  });

  it('leaves nothing in the database that shows a secret', async () => {
    const made = await service().create({ name: 'private' }, now());
    const revealedOnce = await service('once').create({ name: 'private too' }, now());
    const { rows } = await sql<{ row: string }>`
      select consumer_keys::text || encode(sealed_secret, 'escape') || encode(lookup, 'escape') as row from consumer_keys
      union all select consumer_keys::text from consumer_keys
    `.execute(store.records.db);
    const dump = rows.map(({ row }) => row).join('\n');
    expect(dump).toContain(made.key.id);
    for (const { secret } of [made, revealedOnce]) {
      for (const form of ['utf8', 'hex', 'base64'] as const) {
        expect(dump).not.toContain(Buffer.from(secret.slice(3)).toString(form).slice(0, 12));
      }
    }
  });
});
