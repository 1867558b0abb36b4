import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import type { DesiredKey, DesiredState } from '../../src/desired-state/desired-state.ts';
import { type ApplyOptions, DesiredStateService } from '../../src/desired-state/desired-state-service.ts';
import { DigestMismatch, StoreUnavailable } from '../../src/errors.ts';
import { WebhookService } from '../../src/events/webhook-service.ts';
import { keyIdMaker } from '../../src/keys/key-id.ts';
import { SecretSealer } from '../../src/keys/secrets/stored-secret.ts';
import type { PlanRepository } from '../../src/plans/plan-repository.ts';
import { idMaker } from '../../src/platform/id-maker.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { updateKey } from '../support/one-key.ts';
import { RecordingVersions } from '../support/recording-versions.ts';
import { RECORD_STORES, type TestRecords } from '../support/records.ts';
import { sampleChange } from '../support/sample-records.ts';

describe.each(RECORD_STORES)('a configuration in %s', (_store, createRecords) => {
  let store: TestRecords;
  let versions: RecordingVersions;
  let clock: ManualClock;
  let service: DesiredStateService;
  /** How often deliveries were woken. */
  let wakes: number;
  /** Reads in the unit of work under way, or else what is committed. */
  let plans: Pick<PlanRepository, 'find'>;
  beforeAll(async () => {
    store = await createRecords();
  });
  afterAll(() => store.remove());
  beforeEach(() => {
    const { records } = store;
    versions = new RecordingVersions();
    clock = new ManualClock(Date.UTC(2026, 0, 1));
    wakes = 0;
    const vault = new SecretVault([randomBytes(32)], systemRandom);
    service = new DesiredStateService({
      store: records.desiredState,
      inUnit: (work) =>
        records.inUnit(async (unit) => {
          plans = unit.plans;
          await unit.afterCommit(async () => {
            plans = records.plans;
          });
          return work(unit);
        }),
      committed: records.plans,
      versions,
      webhooks: new WebhookService({
        ...{ repository: records.webhooks, vault, source: '/tollgate', random: systemRandom },
        policy: { check: async () => {} },
        makeId: idMaker('whk_', clock, systemRandom),
        makeDeliveryId: idMaker('dlv_', clock, systemRandom),
        wake: () => {
          wakes += 1;
        },
      }),
      sealer: new SecretSealer({ vault, reveal: 'always' }),
      clock,
      random: systemRandom,
      makeId: keyIdMaker(clock, systemRandom),
      keyPrefix: 'tg',
      defaultPlanId: 'default',
    });
  });

  let owners = 0;
  /** Applies as an owner of its own, again and again. */
  function newOwner() {
    owners += 1;
    const owner = `owner-${owners}`;
    const key = (name: string, fields: Partial<DesiredKey> = {}): DesiredKey => ({
      ...{ externalId: `${owner}-${name}`, name, enabled: true, expiresAtMs: null, planId: null, tags: [] },
      ...{ metadata: null, overrides: {}, allowedIps: null, allowedOrigins: null, selfService: [] },
      ...{ secretDigest: null, ...fields },
    });
    const plan = (limit: number) => ({
      ...{ id: owner, description: '', limit, period: 'hour', additionalLimits: [], costs: [] },
    });
    const apply = (desired: Partial<DesiredState>, options: Partial<ApplyOptions> = {}) =>
      service.apply(
        { plans: [], keys: [], webhooks: [], ...desired },
        { owner, prune: false, force: false, ...options },
        sampleChange(),
      );
    const find = async (name: string) => {
      const { keys } = await store.records.desiredState.read({
        ...{
          owner,
          hasAllOfOwner: true,
          planIds: [],
          externalIds: [`${owner}-${name}`],
          hashedExternalIds: [],
          webhookExternalIds: [],
          onlyTags: [],
        },
      });
      return keys.map((one) => one.key).find(({ externalId }) => externalId === `${owner}-${name}`);
    };
    const webhook = {
      ...{ externalId: `${owner}-hook`, url: 'https://example.com/', events: ['tollgate.plan.*'] },
      ...{ onlyTags: [], description: '', enabled: true, batch: false },
    };
    return { owner, key, plan, webhook, apply, find };
  }

  it('marks each copy stale before the commit, and publishes versions after it', async () => {
    const { owner, key, plan, apply, find } = newOwner();
    const keys = [key('a', { planId: owner }), key('b', { planId: owner }), key('c')];
    await apply({ plans: [plan(10)], keys });
    const ids = await Promise.all(['a', 'b', 'c'].map(async (name) => (await find(name))?.id));
    versions.steps.length = 0;
    versions.look = async () => (await plans.find(owner))?.limit;
    await apply(
      { plans: [plan(20)], keys: [key('a', { planId: owner, tags: ['new'] }), key('b', { planId: owner })] },
      { prune: true },
    );
    expect(versions.steps).toEqual([
      { step: 'markStale', keys: expect.arrayContaining(ids), stored: 10 },
      { step: 'publishVersion', keys: [ids[0], ids[1]], versions: ['2.2', '1.2'], stored: 20 },
      { step: 'retire', keys: [ids[2]], windowNames: ['main:3600000'], stored: 20 },
    ]);
    expect(versions.steps[0]?.keys).toHaveLength(3);
  });

  it('deletes a key whose plan does not exist, and the windows of the others', async () => {
    const { owner, key, plan, apply, find } = newOwner();
    await apply({ plans: [plan(10)], keys: [key('a'), key('b', { planId: owner })] });
    const [id, otherId] = [(await find('a'))?.id, (await find('b'))?.id];
    const rename = (from: string, to: string) =>
      sql`UPDATE plans SET id = ${to} WHERE id = ${from}`.execute(store.records.db);
    await rename('default', 'renamed');
    versions.steps.length = 0;
    try {
      await apply({}, { prune: true });
    } finally {
      await rename('renamed', 'default');
    }
    expect(await find('a')).toBeUndefined();
    expect(versions.steps[0]?.step).toBe('markStale');
    expect(versions.steps.slice(1).map(({ stored: _, ...step }) => step)).toEqual(
      expect.arrayContaining([
        { step: 'retire', keys: [id] },
        { step: 'retire', keys: [otherId], windowNames: ['main:3600000'] },
      ]),
    );
  });

  it('wakes deliveries where it changes a webhook', async () => {
    const { key, webhook, apply } = newOwner();
    await apply({ keys: [key('a')] });
    expect(wakes).toBe(0);
    await apply({ keys: [key('a')], webhooks: [webhook] });
    expect(wakes).toBe(1);
  });

  it('exports keys of several pages, but none that shares its externalId', async () => {
    const { owner } = newOwner();
    const last = 405;
    /** Two ids that three keys and two keys share: at the end of the first page of 200, and at the very end. */
    await sql`
      INSERT INTO consumer_keys (id, name, created_at, updated_at, enabled, lookup, sealed_secret, external_id, managed_by)
      SELECT 'key_' || substr(upper(md5(${owner} || number)), 1, 26), 'n', now(), now(), true,
        sha256((${owner} || number)::bytea), sha256('sealed'::bytea),
        ${owner} || '-' || lpad((CASE WHEN number BETWEEN 199 AND 201 THEN 199 WHEN number = ${last} THEN number - 1
          ELSE number END)::text, 5, '0'), ${owner}
      FROM generate_series(1, ${last}::int) AS number`.execute(store.records.db);
    const exported: (string | null)[] = [];
    const selection = { owner, onlyTags: [] };
    for await (const keys of store.records.desiredState.exportKeys(selection))
      exported.push(...keys.map(({ externalId }) => externalId));
    const unique = Array.from({ length: last }, (_, index) => index + 1)
      .filter((number) => (number < 199 || number > 201) && number < last - 1)
      .map((number) => `${owner}-${String(number).padStart(5, '0')}`);
    expect(exported).toEqual(unique);
    expect(await store.records.desiredState.countLeftOut(selection)).toBe(last - unique.length);
  });

  it('changes nothing while copies can not be made stale', async () => {
    const { key, apply, find } = newOwner();
    await apply({ keys: [key('a')] });
    versions.failing = { step: 'markStale', error: new StoreUnavailable('redis', new Error('unavailable')) };
    await expect(apply({ keys: [key('a', { enabled: false }), key('b')] })).rejects.toThrow(StoreUnavailable);
    expect(await find('a')).toMatchObject({ enabled: true, version: 1 });
    expect(await find('b')).toBeUndefined();
  });

  it('reports that versions were not published, and then has nothing to change', async () => {
    const { key, apply, find } = newOwner();
    await apply({ keys: [key('a')] });
    versions.failing = {
      step: 'publishVersion',
      error: new StoreUnavailable('redis', new Error('unavailable')),
    };
    const wanted = { keys: [key('a', { enabled: false })] };
    await expect(apply(wanted)).rejects.toThrow(StoreUnavailable);
    expect(await find('a')).toMatchObject({ enabled: false });
    versions.failing = undefined;
    expect((await apply(wanted))?.difference.keys).toEqual([]);
  });

  it('is rolled back where the marks of copies may have expired before it is written', async () => {
    const { key, apply, find } = newOwner();
    await apply({ keys: [key('a')] });
    const markStale = versions.markStale.bind(versions);
    versions.markStale = async (ids) => {
      await markStale(ids);
      clock.advance(16_000);
      clock.setWallClockAhead(-3_600_000);
    };
    await expect(apply({ keys: [key('a', { enabled: false })] })).rejects.toThrow(StoreUnavailable);
    expect(await find('a')).toMatchObject({ enabled: true });
  });

  it('is applied although the wall clock is set ahead meanwhile', async () => {
    const { key, apply, find } = newOwner();
    await apply({ keys: [key('a')] });
    const markStale = versions.markStale.bind(versions);
    versions.markStale = async (ids) => {
      await markStale(ids);
      clock.setWallClockAhead(3_600_000);
    };
    await apply({ keys: [key('a', { enabled: false })] });
    expect(await find('a')).toMatchObject({ enabled: false });
  });

  it('is applied only as it was looked at, where its digest is expected', async () => {
    const { owner, key, apply, find } = newOwner();
    await apply({ keys: [key('a')] });
    const wanted = { plans: [], keys: [key('a', { enabled: false })], webhooks: [] };
    const { digest } = await service.diff(wanted, { owner, prune: false }, sampleChange());
    await apply({ keys: [key('a'), key('b')] });
    const other = { keys: [key('a', { enabled: false }), key('b', { enabled: false })] };
    await expect(apply(other, { expectDigest: digest })).rejects.toThrow(DigestMismatch);
    expect(await find('a')).toMatchObject({ enabled: true });
    expect(await find('b')).toMatchObject({ enabled: true });
    await apply(wanted, { expectDigest: digest });
    expect(await find('a')).toMatchObject({ enabled: false });
  });

  it('needs the hash of the secret of each new key, where a generated one would never be shown', async () => {
    const { key, apply, find } = newOwner();
    await apply({ keys: [key('old')] });
    const keys = [key('old', { tags: ['x'] }), key('new')];
    await expect(apply({ keys }, { needsSecretHash: true })).rejects.toMatchObject({
      faults: [expect.objectContaining({ field: 'keys[1].secretHash' })],
    });
    expect((await find('old'))?.tags).toEqual([]);
    const hashed = [key('old', { tags: ['x'] }), key('new', { secretDigest: randomBytes(32) })];
    await apply({ keys: hashed }, { needsSecretHash: true });
    expect((await find('old'))?.tags).toEqual(['x']);
  });

  it('writes nothing about records that are as they were applied', async () => {
    const { plan, key, apply } = newOwner();
    const wanted = { plans: [plan(10)], keys: [key('a')] };
    await apply(wanted);
    expect((await apply(wanted))?.difference).toMatchObject({
      ...{ plans: [], keys: [], notedPlans: [], notedKeys: [] },
    });
  });

  it('is not applied again unless it has changed, where that is wanted', async () => {
    const { key, apply, find } = newOwner();
    const wanted = { keys: [key('a')] };
    expect(await apply(wanted, { unlessApplied: true })).toBeDefined();
    const made = await find('a');
    await updateKey(store.records.keys, made?.id ?? '', { enabled: false }, sampleChange());
    expect(await apply(wanted, { unlessApplied: true })).toBeUndefined();
    expect(await find('a')).toMatchObject({ enabled: false });
    await expect(apply({ keys: [key('a', { tags: ['x'] })] }, { unlessApplied: true })).rejects.toMatchObject(
      {
        code: 'managed_elsewhere',
      },
    );
  });
});
