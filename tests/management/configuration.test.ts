import { createHash, randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { parse } from 'yaml';
import { limitDeletions } from '../support/limit-deletions.ts';
import { until } from '../support/until.ts';
import { actDuring, waitingForLocks } from '../support/waiting-for-locks.ts';
import { START_MS, startManagement, type TestManagement } from './start-management.ts';

const EXPORT = '/tollgate/config';
const DIFF = '/tollgate/config/diff';
const APPLY = '/tollgate/config/apply';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(async () => {
  const logged = management.lines.join('');
  for (const secret of shown) expect(logged).not.toContain(secret);
  await management.stop();
});

/** Secrets that must not be in any log. */
const shown: string[] = [];
let owners = 0;

/** An owner that no other test has, and names of its own. */
function newOwner() {
  owners += 1;
  const owner = `team-${owners}`;
  return {
    owner,
    id: (name: string) => `${owner}.${name}`,
    plan: (name = 'gold', fields: object = {}) => ({
      ...{ rateLimitId: `${owner}.${name}`, description: '', limit: 10, period: 'hour' },
      ...fields,
    }),
    key: (name = 'app', fields: object = {}) => ({ externalId: `${owner}.${name}`, name, ...fields }),
  };
}

async function apply(body: object, status = 200) {
  const response = await management.send('post', APPLY, body);
  for (const { secret } of response.body.secrets ?? []) shown.push(secret);
  expect({ status: response.status, body: response.body }).toMatchObject({ status });
  return response.body;
}

async function diff(body: object) {
  return (await management.send('post', DIFF, body).expect(200)).body;
}

async function keyOf(externalId: string) {
  const path = `/consumer-api-key?externalId=${encodeURIComponent(externalId)}`;
  const { apiKeys } = (await management.send('get', path).expect(200)).body;
  expect(apiKeys.length).toBeLessThanOrEqual(1);
  return apiKeys[0];
}

async function entriesAbout(targetId: string) {
  const path = `/tollgate/audit-log?targetId=${encodeURIComponent(targetId)}`;
  return (await management.send('get', path).expect(200)).body.entries;
}

function hashOf(secret: string) {
  return { algorithm: 'sha256', value: createHash('sha256').update(secret).digest('hex') };
}

describe('POST /tollgate/config/apply', () => {
  it('makes plans and keys, and shows the secrets of those keys once', async () => {
    const { owner, plan, key, id } = newOwner();
    const fields = {
      rateLimitId: id('gold'),
      tags: ['eu'],
      metadata: { team: 'a', nested: { b: [1] } },
      overrides: { main: { limit: 5, until: '2030-01-01T00:00:00Z' } },
      expiresAt: '2031-01-01T00:00:00Z',
      allowedIps: ['203.0.113.0/24'],
      allowedOrigins: ['https://app.example.com'],
      selfService: ['rotate'],
    };
    const config = { plans: [plan()], keys: [key('app', fields)] };
    const body = await apply({ config, owner });
    const made = await keyOf(id('app'));
    expect(made).toMatchObject({ name: 'app', ...fields, managedBy: owner });
    expect(body).toEqual({
      changes: [
        {
          action: 'create',
          type: 'plan',
          id: id('gold'),
          fields: expect.objectContaining({ limit: { from: null, to: 10 } }),
        },
        {
          action: 'create',
          type: 'key',
          id: id('app'),
          consumerApiKeyId: made.consumerApiKeyId,
          fields: expect.objectContaining({ managedBy: { from: null, to: owner } }),
        },
      ],
      summary: { create: 2, update: 0, delete: 0, unchanged: 0 },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      secrets: [
        { externalId: id('app'), consumerApiKeyId: made.consumerApiKeyId, secret: expect.any(String) },
      ],
    });
    const { secret } = body.secrets[0];
    const found = await management.send('post', '/api-keys/find', { secret }).expect(200);
    expect(found.body.consumerApiKeyId).toBe(made.consumerApiKeyId);
    const shownPlan = await management.send('get', `/rate-limit/${id('gold')}`).expect(200);
    expect(shownPlan.body).toMatchObject({ limit: 10, managedBy: owner });
  });

  it('makes no change and no audit entry for a configuration that is applied already', async () => {
    const { owner, plan, key, id } = newOwner();
    const config = {
      plans: [plan('gold', { additionalLimits: [{ limitId: 'burst', limit: 2, period: '1s', per: 'key' }] })],
      keys: [
        key('app', { rateLimitId: id('gold'), metadata: { z: 1, a: { y: 2, b: 3 } }, tags: ['b', 'a'] }),
      ],
    };
    await apply({ config, owner });
    const before = await keyOf(id('app'));
    management.clock.advance(60_000);
    const body = await apply({ config, owner, prune: true });
    expect(body).toMatchObject({
      changes: [],
      summary: { create: 0, update: 0, delete: 0, unchanged: 2 },
      secrets: [],
    });
    expect(await keyOf(id('app'))).toEqual(before);
    expect(await entriesAbout(before.consumerApiKeyId)).toHaveLength(1);
    expect(await entriesAbout(id('gold'))).toHaveLength(1);
  });

  it('changes what differs, and takes away what the configuration no longer says', async () => {
    const { owner, plan, key, id } = newOwner();
    const { changes: made } = await apply({
      config: {
        plans: [plan()],
        keys: [key('app', { rateLimitId: id('gold'), tags: ['a'], enabled: false })],
      },
      owner,
    });
    const config = { plans: [plan('gold', { limit: 20 })], keys: [key('app', { name: 'renamed' })] };
    const { changes, secrets } = await apply({ config, owner });
    expect(changes).toEqual([
      { action: 'update', type: 'plan', id: id('gold'), fields: { limit: { from: 10, to: 20 } } },
      {
        action: 'update',
        type: 'key',
        id: id('app'),
        consumerApiKeyId: made[1].consumerApiKeyId,
        fields: {
          name: { from: 'app', to: 'renamed' },
          rateLimitId: { from: id('gold'), to: null },
          enabled: { from: false, to: null },
          tags: { from: ['a'], to: null },
        },
      },
    ]);
    expect(secrets).toEqual([]);
    expect(await keyOf(id('app'))).toMatchObject({
      ...{ name: 'renamed', rateLimitId: null, enabled: true, tags: [] },
      consumerApiKeyId: made[1].consumerApiKeyId,
    });
  });

  it('writes an entry for each change, with its actor and its reason', async () => {
    const { owner, plan, key, id } = newOwner();
    const token = await management.createToken({ name: 'pipeline', scopes: ['ci'] });
    await management
      .sendAs(token.secret, 'post', APPLY, {
        config: {
          plans: [plan()],
          keys: [key('app', { secretHash: hashOf(randomBytes(24).toString('hex')) })],
        },
        owner,
      })
      .set('X-Audit-Reason', 'commit 1234')
      .expect(200);
    const { consumerApiKeyId } = await keyOf(id('app'));
    expect([...(await entriesAbout(consumerApiKeyId)), ...(await entriesAbout(id('gold')))]).toEqual([
      expect.objectContaining({
        action: 'key.create',
        actor: { type: 'token', adminTokenId: token.adminTokenId, name: 'pipeline' },
        reason: 'commit 1234',
        changes: expect.objectContaining({ managedBy: { from: null, to: owner } }),
      }),
      expect.objectContaining({ action: 'plan.create', target: expect.objectContaining({ id: id('gold') }) }),
    ]);
  });

  it('makes a key with the secret of its secretHash, and leaves it at that later', async () => {
    const { owner, key, id } = newOwner();
    const secret = randomBytes(24).toString('base64url');
    shown.push(secret);
    const config = { keys: [key('app', { secretHash: hashOf(secret) })] };
    expect((await apply({ config, owner })).secrets).toEqual([]);
    const find = () => management.send('post', '/api-keys/find', { secret });
    const { consumerApiKeyId } = (await find().expect(200)).body;
    await management
      .send('post', `/consumer-api-key/${consumerApiKeyId}/rotate`, { graceSeconds: 0 })
      .expect(200);
    expect((await apply({ config, owner })).changes).toEqual([]);
    await find().expect(404);
    expect(await keyOf(id('app'))).toMatchObject({ consumerApiKeyId });
  });

  it('waits for imports before it locks keys, so that neither waits for the other', async () => {
    const { owner, key, id } = newOwner();
    await apply({ config: { keys: [key('old')] }, owner });
    const secretHash = hashOf(randomBytes(24).toString('base64url'));
    const config = { keys: [key('old', { tags: ['changed'] }), key('new', { secretHash })] };
    const { db } = management.records;
    const { applied, unlocked } = await db.transaction().execute(async (trx) => {
      await sql`SELECT FROM secret_imports FOR UPDATE`.execute(trx);
      const applying = apply({ config, owner });
      await until(async () => (await waitingForLocks(db)) > 0);
      const old = sql`SELECT FROM consumer_keys WHERE external_id = ${id('old')} FOR UPDATE SKIP LOCKED`;
      return { applied: applying, unlocked: (await old.execute(trx)).rows.length };
    });
    await applied;
    expect(unlocked).toBe(1);
  });

  it('is 409 for a secretHash of a secret that a key has, and names the key', async () => {
    const { owner, plan, key, id } = newOwner();
    const { secret } = await management.createKey();
    const config = { plans: [plan()], keys: [key('free'), key('taken', { secretHash: hashOf(secret) })] };
    const body = await apply({ config, owner }, 409);
    expect(body).toMatchObject({
      code: 'secret_taken',
      conflicts: [{ type: 'key', id: id('taken'), reason: 'secret_taken' }],
    });
    expect(await keyOf(id('free'))).toBeUndefined();
    await management.send('get', `/rate-limit/${id('gold')}`).expect(404);
  });

  it('is 409 for a plan that is made elsewhere while it is applied', async () => {
    const { owner, plan, id } = newOwner();
    const { status, body } = await actDuring(
      management.records.db,
      sql`INSERT INTO plans (id, description, "limit", period, created_at, updated_at)
        VALUES (${id('gold')}, '', 1, 'hour', now(), now())`,
      () => management.send('post', APPLY, { config: { plans: [plan(), plan('new')] }, owner }),
    );
    expect({ status, body }).toMatchObject({
      status: 409,
      body: {
        code: 'managed_elsewhere',
        conflicts: [{ type: 'plan', id: id('gold'), reason: 'not_managed' }],
      },
    });
    await management.send('get', `/rate-limit/${id('new')}`).expect(404);
  });

  it('is performed once with an Idempotency-Key, and shows the secrets again', async () => {
    const { owner, key } = newOwner();
    const send = () =>
      management.send('post', APPLY, { config: { keys: [key()] }, owner }).set('Idempotency-Key', owner);
    const first = await send().expect(200);
    const second = await send().expect(200);
    expect(second.headers['idempotency-replayed']).toBe('true');
    expect(second.body).toEqual(first.body);
    shown.push(first.body.secrets[0].secret);
  });

  it('leaves nothing of itself with an Idempotency-Key where it is rejected', async () => {
    const { owner, plan, key, id } = newOwner();
    const { secret } = await management.createKey();
    const config = { plans: [plan()], keys: [key('app', { secretHash: hashOf(secret) })] };
    const sent = management
      .send('post', APPLY, { config, owner })
      .set('Idempotency-Key', `${owner}-rejected`);
    await sent.expect(409);
    await management.send('get', `/rate-limit/${id('gold')}`).expect(404);
  });

  it('lets a key be expired, as one becomes by itself', async () => {
    const { owner, key, id } = newOwner();
    const expiresAt = new Date(START_MS - 86_400_000).toISOString().replace(/\.\d+/, '');
    const config = { keys: [key('app', { expiresAt })] };
    await apply({ config, owner });
    expect(await keyOf(id('app'))).toMatchObject({ expiresAt });
    expect((await apply({ config, owner })).changes).toEqual([]);
  });

  it('tells keys apart by every character of their externalId', async () => {
    const { owner, key } = newOwner();
    const names = ['é', 'e\u0301', '🔑', 'A', 'a', 'a ', '__proto__', 'toString', "'; --"];
    const config = { keys: names.map((name) => key(name, { name: 'n', metadata: { constructor: name } })) };
    expect((await apply({ config, owner })).summary).toMatchObject({ create: names.length });
    expect((await apply({ config, owner })).summary).toMatchObject({ unchanged: names.length });
  });
});

describe('prune', () => {
  it('deletes only what the owner manages and the configuration does not have', async () => {
    const { owner, plan, key, id } = newOwner();
    const other = newOwner();
    await apply({ config: { plans: [plan(), plan('old')], keys: [key(), key('old')] }, owner });
    await apply({ config: { plans: [other.plan()], keys: [other.key()] }, owner: other.owner });
    await management.createPlan({ rateLimitId: id('api') });
    await management
      .send('post', '/consumer-api-key/create', { name: 'api', externalId: id('api') })
      .expect(201);
    const config = { plans: [plan()], keys: [key()] };
    expect((await apply({ config, owner })).changes).toEqual([]);
    const { changes, summary } = await apply({ config, owner, prune: true });
    expect(changes).toMatchObject([
      { action: 'delete', type: 'plan', id: id('old'), fields: { limit: { from: 10, to: null } } },
      { action: 'delete', type: 'key', id: id('old') },
    ]);
    expect(summary).toEqual({ create: 0, update: 0, delete: 2, unchanged: 2 });
    expect(await keyOf(id('old'))).toBeUndefined();
    await management.send('get', `/rate-limit/${id('old')}`).expect(404);
    expect(await keyOf(id('api'))).toMatchObject({ managedBy: null });
    expect(await keyOf(other.id('app'))).toMatchObject({ managedBy: other.owner });
    await management.send('get', `/rate-limit/${id('api')}`).expect(200);
    expect((await entriesAbout(id('old'))).map(({ action }: { action: string }) => action)).toEqual([
      'plan.delete',
      'plan.create',
    ]);
  });

  it('deletes nothing for an owner that manages nothing', async () => {
    const { owner, key, id } = newOwner();
    await apply({ config: { keys: [key()] }, owner });
    const body = await apply({ config: {}, owner: `${owner}-misspelt`, prune: true });
    expect(body.summary).toEqual({ create: 0, update: 0, delete: 0, unchanged: 0 });
    expect(await keyOf(id('app'))).toBeDefined();
  });

  it('deletes many keys in parts, which each end within the time of a statement', async () => {
    const { owner, plan, key, id } = newOwner();
    const keys = Array.from({ length: 51 }, (_, number) => key(`app-${number}`, { rateLimitId: id('gold') }));
    await apply({ config: { plans: [plan()], keys }, owner });
    const { db } = management.records;
    await limitDeletions(db, 'consumer_keys', 50);
    expect((await apply({ config: {}, owner, prune: true })).summary).toMatchObject({ delete: 52 });
    await sql`DROP FUNCTION limit_deletions_of_consumer_keys CASCADE`.execute(db);
    expect(await keyOf(id('app-50'))).toBeUndefined();
  });

  it('moves keys to another plan before it deletes theirs', async () => {
    const { owner, plan, key, id } = newOwner();
    await apply({ config: { plans: [plan('old')], keys: [key('app', { rateLimitId: id('old') })] }, owner });
    const config = { plans: [plan('new')], keys: [key('app', { rateLimitId: id('new') })] };
    expect((await apply({ config, owner, prune: true })).summary).toMatchObject({
      create: 1,
      update: 1,
      delete: 1,
    });
    expect(await keyOf(id('app'))).toMatchObject({ rateLimitId: id('new') });
  });

  it('is 409 for a plan that keys of others are bound to, and changes nothing', async () => {
    const { owner, plan, key, id } = newOwner();
    await apply({ config: { plans: [plan()], keys: [key()] }, owner });
    const bound = { name: 'n', rateLimitId: id('gold') };
    await management.send('post', '/consumer-api-key/create', bound).expect(201);
    const body = await apply({ config: {}, owner, prune: true }, 409);
    expect(body).toMatchObject({ code: 'plan_in_use', boundKeys: 1 });
    expect(await keyOf(id('app'))).toBeDefined();
  });

  it('is 400 for a key whose plan would be deleted', async () => {
    const { owner, plan, key, id } = newOwner();
    await apply({ config: { plans: [plan()] }, owner });
    const body = await apply(
      { config: { keys: [key('app', { rateLimitId: id('gold') })] }, owner, prune: true },
      400,
    );
    expect(body.errors).toEqual([
      {
        field: 'config.keys[0].rateLimitId',
        message: 'must be the id of a plan of this configuration, or of one that there is and stays',
      },
    ]);
  });
});

describe('what is managed elsewhere', () => {
  it.each([
    ['not_managed', null],
    ['other_owner', 'someone-else'],
  ])('is 409 with the reason %s, and is taken over by force', async (reason, manager) => {
    const { owner, plan, key, id } = newOwner();
    if (manager === null) {
      await management.createPlan({ rateLimitId: id('gold') });
      await management
        .send('post', '/consumer-api-key/create', { name: 'n', externalId: id('app') })
        .expect(201);
    } else {
      await apply({ config: { plans: [plan()], keys: [key()] }, owner: `${owner}-${manager}` });
    }
    const config = { plans: [plan()], keys: [key()] };
    const conflicts = [
      { type: 'plan', id: id('gold'), reason },
      { type: 'key', id: id('app'), reason },
    ];
    expect(await apply({ config, owner }, 409)).toMatchObject({ code: 'managed_elsewhere', conflicts });
    expect((await diff({ config, owner })).changes).toMatchObject([
      { conflict: reason },
      { conflict: reason },
    ]);
    const before = await keyOf(id('app'));
    expect(before.managedBy).not.toBe(owner);
    const { changes } = await apply({ config, owner, force: true });
    expect(changes).toHaveLength(2);
    expect(await keyOf(id('app'))).toMatchObject({
      consumerApiKeyId: before.consumerApiKeyId,
      managedBy: owner,
    });
    const [entry] = await entriesAbout(before.consumerApiKeyId);
    expect(entry.changes.managedBy).toEqual({ from: before.managedBy, to: owner });
  });

  it.each([
    ['changed', { name: 'app', tags: ['wanted'] }, false],
    ['deleted', undefined, true],
  ])('and would be %s is 409 after a PATCH, unless it is forced', async (_what, wanted, prune) => {
    const { owner, key, id } = newOwner();
    await apply({ config: { keys: [key()] }, owner });
    const { consumerApiKeyId } = await keyOf(id('app'));
    await management.send('patch', `/consumer-api-key/${consumerApiKeyId}`, { enabled: false }).expect(200);
    const config = { keys: wanted === undefined ? [] : [key('app', wanted)] };
    const body = await apply({ config, owner, prune }, 409);
    expect(body.conflicts).toEqual([{ type: 'key', id: id('app'), reason: 'changed_elsewhere' }]);
    expect(await keyOf(id('app'))).toMatchObject({ enabled: false });
    await apply({ config, owner, prune, force: true });
    const after = await keyOf(id('app'));
    if (wanted === undefined) expect(after).toBeUndefined();
    else expect(after).toMatchObject({ enabled: true, tags: ['wanted'] });
  });

  it('is no conflict once the configuration says the same', async () => {
    const { owner, plan, id } = newOwner();
    await apply({ config: { plans: [plan()] }, owner });
    await management.send('patch', `/rate-limit/${id('gold')}`, { limit: 11 }).expect(200);
    const config = { plans: [plan('gold', { limit: 11 })] };
    expect((await apply({ config, owner })).changes).toEqual([]);
    await apply({ config: { plans: [plan('gold', { limit: 12 })] }, owner });
    expect(await entriesAbout(id('gold'))).toHaveLength(3);
  });

  it('does not mean a secret that was rotated', async () => {
    const { owner, key, id } = newOwner();
    await apply({ config: { keys: [key()] }, owner });
    const { consumerApiKeyId } = await keyOf(id('app'));
    const rotated = { graceSeconds: 60 };
    await management.send('post', `/consumer-api-key/${consumerApiKeyId}/rotate`, rotated).expect(200);
    await apply({ config: { keys: [key('app', { tags: ['new'] })] }, owner });
  });

  it('is the key of this owner where several have the externalId, else nothing helps', async () => {
    const { owner, key, id } = newOwner();
    const create = () =>
      management.send('post', '/consumer-api-key/create', { name: 'n', externalId: id('app') }).expect(201);
    await apply({ config: { keys: [key()] }, owner });
    await create();
    expect((await apply({ config: { keys: [key()] }, owner })).summary).toMatchObject({ unchanged: 1 });
    await create();
    const body = await apply({ config: { keys: [key()] }, owner: `${owner}-other`, force: true }, 409);
    const ambiguous = { type: 'key', id: id('app'), reason: 'ambiguous' };
    expect(body.conflicts).toEqual([ambiguous]);
    expect(body.error).toMatch(/give it another\.$/);
    await management
      .send('post', '/consumer-api-key/create', { name: 'n', externalId: id('alone') })
      .expect(201);
    const both = await apply({ config: { keys: [key(), key('alone')] }, owner: `${owner}-third` }, 409);
    expect(both.conflicts).toEqual([ambiguous, { type: 'key', id: id('alone'), reason: 'not_managed' }]);
    expect(both.error).toMatch(/give it another\. "force" takes the others over\.$/);
  });

  it('takes the scopes to change what others have made', async () => {
    const { owner, key } = newOwner();
    const { secret } = await management.createToken({ scopes: ['ci'] });
    const body = { config: { keys: [key()] }, owner, force: true };
    const response = await management.sendAs(secret, 'post', APPLY, body).expect(403);
    expect(response.body).toMatchObject({ code: 'missing_scope', requiredScope: 'keys:write' });
  });
});

describe('the default plan', () => {
  const config = { plans: [{ rateLimitId: 'default', limit: 7, period: 'minute' }] };
  let fresh: TestManagement;
  beforeEach(async () => {
    fresh = await startManagement();
  });
  afterEach(() => fresh.stop());

  it('may be managed by the first owner while it is unchanged', async () => {
    const send = (owner: string) => fresh.send('post', APPLY, { config, owner });
    await send('first').expect(200);
    expect((await send('second').expect(409)).body.code).toBe('managed_elsewhere');
  });

  it('is released with its limits once the configuration of its owner lacks it', async () => {
    await fresh.send('post', APPLY, { config, owner: 'first' }).expect(200);
    const shownPlan = async () => (await fresh.send('get', '/rate-limit/default').expect(200)).body;
    expect(await shownPlan()).toMatchObject({ managedBy: 'first' });
    await fresh.send('patch', '/rate-limit/default', { limit: 8 }).expect(200);
    const without = { config: {}, owner: 'first', prune: true };
    const { changes, digest } = (await fresh.send('post', DIFF, without).expect(200)).body;
    const fields = { managedBy: { from: 'first', to: null } };
    expect(changes).toEqual([{ action: 'update', type: 'plan', id: 'default', fields }]);
    await fresh.send('post', APPLY, { ...without, expectDigest: digest }).expect(200);
    const released = await shownPlan();
    expect(released).toMatchObject({ limit: 8, period: 'minute' });
    expect(released).not.toHaveProperty('managedBy');
    const { body } = await fresh.send('get', '/tollgate/audit-log?targetId=default&limit=1').expect(200);
    expect(body.entries).toMatchObject([{ action: 'plan.update', changes: fields }]);
    expect((await fresh.send('post', DIFF, without).expect(200)).body.changes).toEqual([]);
  });
});

describe('POST /tollgate/config/diff', () => {
  it('changes nothing, and gives the digest with which the same is applied', async () => {
    const { owner, plan, key, id } = newOwner();
    const config = { plans: [plan()], keys: [key()] };
    const { changes, summary, digest } = await diff({ config, owner });
    expect(changes).toHaveLength(2);
    expect(summary).toEqual({ create: 2, update: 0, delete: 0, unchanged: 0 });
    expect(await keyOf(id('app'))).toBeUndefined();
    const applied = await apply({ config, owner, expectDigest: digest });
    expect(applied.digest).toBe(digest);
  });

  it('gives a digest that is no longer right when something has changed meanwhile', async () => {
    const { owner, plan, id } = newOwner();
    await apply({ config: { plans: [plan()] }, owner });
    const config = { plans: [plan('gold', { limit: 20 })] };
    const { digest } = await diff({ config, owner });
    await apply({ config: { plans: [plan('gold', { limit: 15 })] }, owner });
    const body = await apply({ config, owner, expectDigest: digest }, 412);
    expect(body).toMatchObject({ code: 'digest_mismatch', digest: (await diff({ config, owner })).digest });
    const { limit } = (await management.send('get', `/rate-limit/${id('gold')}`).expect(200)).body;
    expect(limit).toBe(15);
  });

  it('gives another digest for another secretHash of a new key', async () => {
    const { owner, key } = newOwner();
    const digests = await Promise.all(
      ['a', 'b'].map(async (secret) => {
        const config = { keys: [key('app', { secretHash: hashOf(secret) })] };
        return (await diff({ config, owner })).digest;
      }),
    );
    expect(new Set(digests).size).toBe(2);
  });
});

describe('the faults of a configuration', () => {
  it('are listed together with their paths, and nothing is stored', async () => {
    const { owner, plan, key, id } = newOwner();
    const secretHash = hashOf('the same secret');
    const config = {
      plans: [
        plan(),
        plan('gold'),
        plan('twice', { additionalLimits: [{ limitId: 'main', limit: 1, period: 'day' }] }),
      ],
      keys: [
        key('a', { secretHash }),
        key('a'),
        key('c', { metadata: { text: 'x'.repeat(9000) } }),
        key('d', {
          secretHash: { ...secretHash, value: Buffer.from(secretHash.value, 'hex').toString('base64') },
        }),
        key('e', { rateLimitId: 'no plan' }),
      ],
    };
    const { code, errors } = await apply({ config, owner }, 400);
    expect(code).toBe('invalid_body');
    expect(errors.map(({ field }: { field: string }) => field)).toEqual([
      'config.plans[2].additionalLimits[0].limitId',
      'config.keys[2].metadata',
      'config.keys[4].rateLimitId',
      'config.plans[1].rateLimitId',
      'config.keys[1].externalId',
      'config.keys[3].secretHash',
    ]);
    expect(await keyOf(id('a'))).toBeUndefined();
  });

  it.each<readonly [string, object, string]>([
    ['an unknown list', { key: [] }, 'config.key'],
    [
      'an unknown field',
      { keys: [{ externalId: 'a', name: 'n', expires_at: null }] },
      'config.keys[0].expires_at',
    ],
    ['a secret', { keys: [{ externalId: 'a', name: 'n', secret: 'x'.repeat(30) }] }, 'config.keys[0].secret'],
    ['no externalId', { keys: [{ name: 'n' }] }, 'config.keys[0].externalId'],
    ['externalId null', { keys: [{ externalId: null, name: 'n' }] }, 'config.keys[0].externalId'],
    [
      'an override',
      { keys: [{ externalId: 'a', name: 'n', overrides: { main: { limit: 0 } } }] },
      'config.keys[0].overrides.main.limit',
    ],
    ['a plan without a limit', { plans: [{ rateLimitId: 'a', period: 'day' }] }, 'config.plans[0].limit'],
    [
      'a plan that is a path',
      { plans: [{ rateLimitId: 'create', limit: 1, period: 'day' }] },
      'config.plans[0].rateLimitId',
    ],
    ['too many keys', { keys: Array.from({ length: 10_001 }, () => ({})) }, 'config.keys'],
    ['no object', [], 'config'],
  ])('name %s', async (_what, config, field) => {
    const { errors } = await apply({ config, owner: 'faulty' }, 400);
    expect(errors[0]).toMatchObject({ field });
  });

  it('name a plan that there is not', async () => {
    const { owner, key } = newOwner();
    const { errors } = await apply(
      { config: { keys: [key(), key('b', { rateLimitId: 'none' })] }, owner },
      400,
    );
    expect(errors).toMatchObject([{ field: 'config.keys[1].rateLimitId' }]);
  });

  it.each(['', ' ', 'a b', '-a', 'a'.repeat(65), 'a\n', null])('name the owner %j', async (owner) => {
    expect((await apply({ config: {}, owner }, 400)).errors).toMatchObject([{ field: 'owner' }]);
  });

  it('name a secret in the place of a name, and do not repeat it', async () => {
    const { owner, plan } = newOwner();
    const { secret } = await management.createKey();
    shown.push(secret);
    const bodies = {
      owner: { config: {}, owner: secret },
      'config.plans[0].rateLimitId': { config: { plans: [plan('a', { rateLimitId: secret })] }, owner },
    };
    for (const [field, body] of Object.entries(bodies)) {
      for (const path of [APPLY, DIFF]) {
        const { body: fault, text } = await management.send('post', path, body).expect(400);
        expect(fault.errors).toEqual([{ field, message: expect.stringContaining('choose another') }]);
        expect(text).not.toContain(secret);
      }
    }
  });
});

describe('GET /tollgate/config', () => {
  it('gives a configuration that changes nothing when it is applied', async () => {
    const { owner, plan, key, id } = newOwner();
    const config = {
      plans: [
        plan('b', { costs: [{ path: '/x', cost: 2, methods: ['GET'] }] }),
        plan('a', { description: 'no: 1' }),
      ],
      keys: [
        key('z', { rateLimitId: id('a'), metadata: { on: 'yes', text: 'a\nb: "c"\n' }, name: '🔑 null' }),
        key('a', { overrides: { main: { limit: 3 } }, tags: ['x'], enabled: false }),
      ],
    };
    await apply({ config, owner });
    const { body, headers } = await management.send('get', `${EXPORT}?owner=${owner}`).expect(200);
    expect(headers).toMatchObject({
      'content-type': expect.stringMatching(/^application\/json/),
      'tollgate-keys-left-out': '0',
    });
    expect(body).toEqual({
      plans: [config.plans[1], config.plans[0]],
      keys: [config.keys[1], config.keys[0]],
    });
    expect((await apply({ config: body, owner, prune: true })).changes).toEqual([]);
    const yaml = await management.send('get', `${EXPORT}?owner=${owner}&format=yaml`).expect(200);
    expect(yaml.headers['content-type']).toMatch(/^application\/yaml/);
    expect(parse(yaml.text ?? String(yaml.body))).toEqual(body);
  });

  it('is YAML for who accepts that, and an empty configuration where there is nothing', async () => {
    const response = await management
      .send('get', `${EXPORT}?owner=nobody`)
      .set('Accept', 'application/yaml')
      .buffer(true)
      .parse((res, done) => {
        let text = '';
        res.on('data', (chunk) => (text += chunk));
        res.on('end', () => done(null, text));
      })
      .expect(200);
    expect(response.body).toBe('plans: []\nkeys: []\n');
    expect(response.headers.vary).toMatch(/Accept/);
  });

  it('has no secrets, digests or instants of changes', async () => {
    const { owner, key } = newOwner();
    const { secrets } = await apply({ config: { keys: [key()] }, owner });
    const { text } = await management.send('get', `${EXPORT}?owner=${owner}`).expect(200);
    expect(text).not.toContain(secrets[0].secret);
    expect(JSON.parse(text).keys).toEqual([key()]);
  });

  it('says how many keys can not be told apart, and leaves them out', async () => {
    const fresh = await startManagement();
    try {
      const create = (fields: object) =>
        fresh.send('post', '/consumer-api-key/create', { name: 'n', ...fields }).expect(201);
      for (const externalId of ['one', 'two', 'two', null]) await create({ externalId });
      const { body, headers } = await fresh.send('get', EXPORT).expect(200);
      expect(headers['tollgate-keys-left-out']).toBe('3');
      expect(body.keys).toEqual([{ externalId: 'one', name: 'n' }]);
      expect(body.plans).toMatchObject([{ rateLimitId: 'default' }]);
    } finally {
      await fresh.stop();
    }
  });
});

describe('a token that is limited to tags', () => {
  it('applies only keys with these tags, and sees no others', async () => {
    const { owner, key, id } = newOwner();
    const { secret } = await management.createToken({
      scopes: ['config:write', 'keys:read', 'plans:read'],
      onlyTags: ['eu'],
    });
    await apply({ config: { keys: [key('us')] }, owner });
    const send = (config: object) => management.sendAs(secret, 'post', APPLY, { config, owner, prune: true });
    const { body } = await send({ keys: [key()] }).expect(400);
    expect(body.errors).toEqual([
      { field: 'config.keys[0].tags', message: 'must have the tags that the admin token is limited to: eu' },
    ]);
    const looked = await management.sendAs(secret, 'post', DIFF, { config: { keys: [key()] }, owner });
    expect([looked.status, looked.body.errors]).toEqual([400, body.errors]);
    const made = await send({ keys: [key('app', { tags: ['eu'] })] }).expect(200);
    shown.push(made.body.secrets[0].secret);
    expect(await keyOf(id('us'))).toBeDefined();
    const exported = await management.sendAs(secret, 'get', `${EXPORT}?owner=${owner}`).expect(200);
    expect(exported.body.keys).toEqual([key('app', { tags: ['eu'] })]);
  });
});
