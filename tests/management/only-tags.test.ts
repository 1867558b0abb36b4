import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startManagement, type TestManagement } from './start-management.ts';

let management: TestManagement;
/** The secret of a token for keys with the tag `eu`, with all scopes. */
let eu: string;
let euTokenId: string;
let own: string;
let foreign: string;
beforeAll(async () => {
  management = await startManagement();
  const scopes = ['read-only', 'keys:write', 'keys:delete', 'keys:secret', 'limits:write', 'tokens:write'];
  ({ secret: eu, adminTokenId: euTokenId } = await management.createToken({ scopes, onlyTags: ['eu'] }));
  own = await createKey({ tags: ['eu', 'paid'] });
  foreign = await createKey({ tags: ['us'], externalId: 'of-another' });
});
afterAll(() => management.stop());

async function createKey(fields: object): Promise<string> {
  const body = { name: 'tagged', ...fields };
  return (await management.send('post', '/consumer-api-key/create', body).expect(201)).body.id;
}

type Method = 'get' | 'post' | 'patch' | 'delete';
const asEu = (method: Method, path: string, body?: object) => management.sendAs(eu, method, path, body);

describe('a token that is limited to tags', () => {
  it('lists only keys with all of them, whatever it asks for', async () => {
    const idsOf = async (query = '') =>
      (await asEu('get', `/consumer-api-key${query}`).expect(200)).body.apiKeys.map(
        ({ consumerApiKeyId }: { consumerApiKeyId: string }) => consumerApiKeyId,
      );
    expect(await idsOf()).toEqual([own]);
    expect(await idsOf('?tag=paid')).toEqual([own]);
    expect(await idsOf('?tag=us')).toEqual([]);
    expect(await idsOf('?externalId=of-another')).toEqual([]);
    expect(await idsOf('?q=of-another')).toEqual([]);
    const { body } = await asEu('get', '/consumer-api-key?count=true').expect(200);
    expect(body.total).toBe(1);
  });

  it.each<[Method, string, object | undefined]>([
    ['get', '', undefined],
    ['patch', '', { name: 'mine' }],
    ['patch', '', { tags: ['eu'] }],
    ['patch', '', { addTags: ['eu'] }],
    ['delete', '', undefined],
    ['get', '/usage', undefined],
    ['get', '/limits', undefined],
    ['post', '/limits/reset', {}],
    ['post', '/limits/grant', { requests: 1 }],
    ['post', '/rotate', { graceSeconds: 0 }],
    ['post', '/end-rotation', { keep: 'new' }],
  ])('gets 404 for %s %s of any other key, and changes nothing of it', async (method, path, body) => {
    const before = (await management.send('get', `/consumer-api-key/${foreign}`).expect(200)).body;
    const response = await asEu(method, `/consumer-api-key/${foreign}${path}`, body).expect(404);
    expect(response.body.code).toBe('key_not_found');
    const after = (await management.send('get', `/consumer-api-key/${foreign}`).expect(200)).body;
    expect(after).toEqual(before);
  });

  it('gets 404 for a plan that is applied to any other key', async () => {
    const body = { consumerApiKeyId: foreign, rateLimitId: 'default' };
    const response = await asEu('post', '/api-keys/apply-rate-limit', body).expect(404);
    expect(response.body.code).toBe('key_not_found');
  });

  it('finds no other key by its secret, and imports none without its tags', async () => {
    const keys = [{ name: 'moved here', secret: 'a-secret-from-another-gateway' }];
    const { body } = await asEu('post', '/api-keys/import', { keys }).expect(200);
    const [{ consumerApiKeyId: id }] = body.results;
    const detail = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(detail.body.tags).toEqual(['eu']);
    const found = await asEu('post', '/api-keys/find', { secret: keys[0]?.secret }).expect(200);
    expect(found.body.consumerApiKeyId).toBe(id);
    const theirs = { name: 'theirs', secret: 'another-secret-from-elsewhere', tags: ['us'] };
    await management.send('post', '/api-keys/import', { keys: [theirs] }).expect(200);
    await management.send('post', '/api-keys/find', { secret: theirs.secret }).expect(200);
    const hidden = await asEu('post', '/api-keys/find', { secret: theirs.secret }).expect(404);
    expect(hidden.body.code).toBe('key_not_found');
    await asEu('delete', `/consumer-api-key/${id}`).expect(200);
  });

  it('learns which keys of an import would have too many tags with its own', async () => {
    const many = Array.from({ length: 20 }, (_, n) => `t${n}`);
    const keys = [['few'], many, ['eu', ...many.slice(1)], many].map((tags, index) => ({
      ...{ name: 'tagged', secret: `another-gateway-has-made-${index}`, tags },
    }));
    const { body } = await asEu('post', '/api-keys/import', { keys }).expect(400);
    expect(body.errors).toEqual(
      ['keys[1].tags', 'keys[3].tags'].map((field) => ({
        field,
        message: 'must be at most 20 with those that the admin token is limited to',
      })),
    );
    const [few] = keys;
    await management.send('post', '/api-keys/find', { secret: few?.secret }).expect(404);
  });

  it('does not learn that another key is being rotated', async () => {
    const rotated = await createKey({ tags: ['us'] });
    const path = `/consumer-api-key/${rotated}`;
    await management.send('post', `${path}/rotate`, { graceSeconds: 600 }).expect(200);
    await asEu('post', `${path}/rotate`, { graceSeconds: 600 }).expect(404);
    await asEu('post', `${path}/end-rotation`, { keep: 'new' }).expect(404);
  });

  it('may do with its own keys what its scopes say', async () => {
    const { body } = await asEu('get', `/consumer-api-key/${own}`).expect(200);
    expect(body.secret).toMatch(/^tg_\w{36}$/);
    await asEu('patch', `/consumer-api-key/${own}`, { name: 'renamed' }).expect(200);
    await asEu('post', `/consumer-api-key/${own}/limits/reset`, {}).expect(200);
    await asEu('post', '/api-keys/apply-rate-limit', {
      consumerApiKeyId: own,
      rateLimitId: 'default',
    }).expect(200);
    const gone = await createKey({ tags: ['eu'] });
    await asEu('delete', `/consumer-api-key/${gone}`).expect(200);
    await asEu('delete', `/consumer-api-key/${gone}`).expect(404);
  });

  it('makes only keys with its tags', async () => {
    const { id } = (await asEu('post', '/consumer-api-key/create', { name: 'new', tags: ['paid'] })).body;
    const { body } = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(body.tags).toEqual(['paid', 'eu']);
    const many = Array.from({ length: 20 }, (_, n) => `t${n}`);
    await asEu('post', '/consumer-api-key/create', { name: 'new', tags: many }).expect(400);
  });

  it('can not move a key out of its sight', async () => {
    const id = await createKey({ tags: ['eu'] });
    const path = `/consumer-api-key/${id}`;
    expect((await asEu('patch', path, { tags: ['other'] }).expect(200)).body.tags).toEqual(['other', 'eu']);
    const { body } = await asEu('patch', path, { removeTags: ['eu'] }).expect(400);
    expect(body.errors).toEqual([expect.objectContaining({ field: 'removeTags' })]);
  });

  it('sees the usage of its own keys only', async () => {
    const insert = (keyId: string, requests: number) =>
      management.records.db
        .insertInto('usage_hours')
        .values({
          key_id: keyId,
          hour: new Date(Math.floor(management.clock.nowMs() / 3_600_000) * 3_600_000),
          plan_id: 'default',
          requests,
          successful: requests,
          forwarded: requests,
          forwarded_us: 0,
          rate_limited: 0,
          client_errors: 0,
          server_errors: 0,
          shadow_limited: 0,
          bytes_in: 0,
          bytes_out: 0,
        })
        .execute();
    await insert(own, 3);
    await insert(foreign, 50);
    const total = async (secret: string, query = '') => {
      const path = `/api-keys/usage?interval=total${query}`;
      const { body } = await management.sendAs(secret, 'get', path).expect(200);
      return body.rows[0]?.requests ?? 0;
    };
    const everything = await management.createToken({ scopes: ['usage:read'] });
    expect(await total(everything.secret)).toBe(53);
    expect(await total(eu)).toBe(3);
    expect(await total(eu, '&groupBy=key')).toBe(3);
    expect(await total(eu, '&groupBy=rateLimit')).toBe(3);
    expect(await total(eu, `&consumerApiKeyId=${foreign}`)).toBe(0);
    expect(await total(eu, '&tag=us')).toBe(0);
  });

  it('sees the entries of its own keys and tokens only', async () => {
    const { body } = await asEu('get', '/tollgate/audit-log').expect(200);
    const targets = new Set(body.entries.map(({ target }: { target: { id: string } }) => target.id));
    expect(targets).toContain(own);
    expect(targets).not.toContain(foreign);
    expect([...targets].every((id) => /^(key|adm)_/.test(String(id)))).toBe(true);
    const counted = await asEu('get', '/tollgate/audit-log?count=true').expect(200);
    expect(counted.body.total).toBe(body.entries.length);
    const asked = await asEu('get', `/tollgate/audit-log?targetId=${foreign}&count=true`).expect(200);
    expect(asked.body).toEqual({ entries: [], total: 0 });
    const csv = await asEu('get', '/tollgate/audit-log?format=csv').expect(200);
    expect(csv.text).not.toContain(foreign);
  });

  it('makes and sees only tokens that are limited to its tags', async () => {
    const wide = await management.createToken({ scopes: ['keys:read'] });
    const path = `/tollgate/admin-token/${wide.adminTokenId}`;
    await asEu('get', path).expect(404);
    await asEu('patch', path, { name: 'mine' }).expect(404);
    await asEu('post', `${path}/rotate`, { graceSeconds: 0 }).expect(404);
    await asEu('delete', path).expect(404);
    const made = await asEu('post', '/tollgate/admin-token/create', { name: 'x', scopes: ['keys:read'] });
    expect(made.body.onlyTags).toEqual(['eu']);
    const widened = await asEu('patch', `/tollgate/admin-token/${made.body.adminTokenId}`, {
      onlyTags: ['a'],
    });
    expect(widened.body.onlyTags).toEqual(['eu', 'a']);
    const { body } = await asEu('get', '/tollgate/admin-token').expect(200);
    const ids = body.adminTokens.map(({ adminTokenId }: { adminTokenId: string }) => adminTokenId);
    expect(ids.toSorted()).toEqual([euTokenId, made.body.adminTokenId].toSorted());
  });

  it('limits no token and no webhook to more than twenty tags, its own among them', async () => {
    const all = ['read-only', 'keys:write', 'tokens:write', 'webhooks:read', 'webhooks:write'];
    const { secret } = await management.createToken({ scopes: all, onlyTags: ['eu'] });
    const others = Array.from({ length: 20 }, (_, n) => `t${n}`);
    const message = 'must be at most 20 with those that the admin token is limited to';
    for (const [path, fields] of [
      ['/tollgate/admin-token', { name: 'x', scopes: ['keys:read'] }],
      ['/tollgate/webhook', { url: 'https://8.8.8.8/', events: ['tollgate.key.*'] }],
    ] as const) {
      const create = (onlyTags: readonly string[]) =>
        management.sendAs(secret, 'post', `${path}/create`, { ...fields, onlyTags });
      const rejected = await create(others).expect(400);
      expect(rejected.body.errors).toEqual([{ field: 'onlyTags', message }]);
      const { body, headers } = await create(others.slice(1)).expect(201);
      expect(body.onlyTags).toEqual(['eu', ...others.slice(1)]);
      const edit = (onlyTags: readonly string[]) =>
        management.sendAs(secret, 'patch', headers.location ?? '', { onlyTags });
      expect((await edit(others).expect(400)).body.errors).toEqual(rejected.body.errors);
      expect((await edit(body.onlyTags).expect(200)).body.onlyTags).toEqual(body.onlyTags);
    }
  });
});

describe('a plan of which a token that is limited to tags sees some keys only', () => {
  let planner: string;
  beforeAll(async () => {
    const scopes = ['read-only', 'keys:write', 'plans:write', 'config:write'];
    ({ secret: planner } = await management.createToken({ scopes, onlyTags: ['eu'] }));
  });

  const asPlanner = (method: Method, path: string, body?: object) =>
    management.sendAs(planner, method, path, body);
  const planOf = async (keyId: string) =>
    (await management.send('get', `/consumer-api-key/${keyId}`).expect(200)).body.rateLimitId;

  it('is not deleted with rebindTo, and none of its keys is moved', async () => {
    const { rateLimitId } = await management.createPlan();
    const seen = await createKey({ tags: ['eu'], rateLimitId });
    const unseen = await createKey({ tags: ['us'], rateLimitId });
    const path = `/rate-limit/${rateLimitId}`;
    for (const query of ['', '?rebindTo=default']) {
      const { body } = await asPlanner('delete', `${path}${query}`).expect(409);
      expect(body).toMatchObject({ code: 'plan_in_use', boundKeys: 1 });
      expect(body.error).toContain('that this admin token does not see');
    }
    expect([await planOf(seen), await planOf(unseen)]).toEqual([rateLimitId, rateLimitId]);
    await management.send('delete', `/consumer-api-key/${unseen}`).expect(200);
    const { body } = await asPlanner('delete', `${path}?rebindTo=default`).expect(200);
    expect(body.reboundKeys).toBe(1);
    expect(await planOf(seen)).toBe('default');
  });

  it('has the number of these keys as boundKeys', async () => {
    const { rateLimitId } = await management.createPlan();
    await createKey({ tags: ['us'], rateLimitId });
    const listed = async () => {
      const { body } = await asPlanner('get', `/rate-limit?include=keys&q=${rateLimitId}`).expect(200);
      return body.rateLimits[0].boundKeys;
    };
    expect(await listed()).toBe(0);
    const { body } = await asPlanner('delete', `/rate-limit/${rateLimitId}`).expect(409);
    expect(body).toMatchObject({ code: 'plan_in_use', boundKeys: 0 });
    await createKey({ tags: ['eu'], rateLimitId });
    expect(await listed()).toBe(1);
  });

  it('is not deleted by a configuration, which says no more of the other keys', async () => {
    const plan = { rateLimitId: 'pruned', limit: 5, period: 'hour' };
    const apply = (plans: readonly object[]) =>
      asPlanner('post', '/tollgate/config/apply', { config: { plans }, owner: 'eu', prune: true });
    await apply([plan]).expect(200);
    await createKey({ tags: ['us'], rateLimitId: 'pruned' });
    const { body } = await apply([]).expect(409);
    expect(body).toMatchObject({ code: 'plan_in_use', boundKeys: 0 });
  });
});

describe('the secret of a key', () => {
  const shown = async (secret: string) =>
    (await management.sendAs(secret, 'get', `/consumer-api-key/${own}`).expect(200)).body.secret;
  const entries = async (actorId: string) =>
    (await management.send('get', `/tollgate/audit-log?action=key.show-secret&actorId=${actorId}`)).body
      .entries;

  it('is asterisks for a token without keys:secret, and no entry', async () => {
    const reader = await management.createToken({ scopes: ['keys:read'] });
    expect(await shown(reader.secret)).toBe(`tg_${'*'.repeat(36)}`);
    expect(await entries(reader.adminTokenId)).toEqual([]);
  });

  it('that is shown has an entry, each time', async () => {
    const reader = await management.createToken({ scopes: ['keys:read', 'keys:secret'] });
    const secret = await shown(reader.secret);
    await shown(reader.secret);
    const found = await entries(reader.adminTokenId);
    expect(found).toHaveLength(2);
    expect(found[0]).toMatchObject({ action: 'key.show-secret', target: { id: own }, changes: {} });
    expect(JSON.stringify(found)).not.toContain(secret);
  });
});

describe('live counters', () => {
  it('that are reset or raised have an entry with the reason', async () => {
    const path = `/consumer-api-key/${own}/limits`;
    await management.send('post', `${path}/reset`, { limitId: 'main', reason: 'ticket 1' }).expect(200);
    await management
      .send('post', `${path}/grant`, { requests: 5 })
      .set('X-Audit-Reason', 'ticket 2')
      .expect(200);
    await management.send('post', `${path}/grant`, { requests: 5, limitId: 'none' }).expect(404);
    const { entries } = (await management.send('get', `/tollgate/audit-log?targetId=${own}&limit=2`)).body;
    expect(entries).toMatchObject([
      { action: 'limits.grant', reason: 'ticket 2', changes: { requests: { from: null, to: 5 } } },
      { action: 'limits.reset', reason: 'ticket 1', changes: { limitId: { from: null, to: 'main' } } },
    ]);
  });
});
