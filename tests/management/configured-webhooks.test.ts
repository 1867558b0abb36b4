import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { startManagement, type TestManagement } from './start-management.ts';

let management: TestManagement;
const shown: string[] = [];
beforeAll(async () => {
  management = await startManagement();
});
afterAll(async () => {
  const logged = management.lines.join('');
  for (const secret of shown) expect(logged).not.toContain(secret);
  await management.stop();
});

/** Public, and never connected to: the webhooks are disabled, or nothing delivers in these tests. */
const URL_OF_RECEIVER = 'https://1.1.1.1/hooks/of-the-receiver';
let owners = 0;

/** An owner that no other test has. */
function newOwner() {
  owners += 1;
  const owner = `team-${owners}`;
  const webhook = (name: string, fields: object = {}) => ({
    ...{ externalId: `${owner}.${name}`, url: URL_OF_RECEIVER, events: ['tollgate.plan.*'], ...fields },
  });
  return { owner, webhook };
}

type Terms = Readonly<Record<string, unknown>>;

async function apply(body: Terms, status = 200, secret?: string) {
  const path = '/tollgate/config/apply';
  const request =
    secret === undefined
      ? management.send('post', path, body)
      : management.sendAs(secret, 'post', path, body);
  const response = await request;
  for (const { secret: made } of response.body.webhookSecrets ?? []) shown.push(made);
  expect({ status: response.status, body: response.body }).toMatchObject({ status });
  return response.body;
}

async function webhooksOf(owner: string) {
  const { webhooks } = (await management.send('get', '/tollgate/webhook?limit=1000').expect(200)).body;
  return webhooks.filter((each: { managedBy: string | null }) => each.managedBy === owner);
}

async function exported(owner: string, secret?: string) {
  const path = `/tollgate/config?owner=${owner}`;
  const request =
    secret === undefined ? management.send('get', path) : management.sendAs(secret, 'get', path);
  return (await request.expect(200)).body;
}

describe('webhooks of a configuration', () => {
  it('are made with a secret that is shown once, and signs', async () => {
    const { owner, webhook } = newOwner();
    const config = { webhooks: [webhook('chat', { onlyTags: ['eu'], description: 'Chat', enabled: false })] };
    const body = await apply({ config, owner });
    const [made] = await webhooksOf(owner);
    expect(made).toMatchObject({ ...config.webhooks[0], managedBy: owner, batch: false, headers: {} });
    const secret = { externalId: `${owner}.chat`, webhookId: made.webhookId };
    expect(body).toMatchObject({
      changes: [{ action: 'create', type: 'webhook', id: `${owner}.chat`, webhookId: made.webhookId }],
      summary: { create: 1, update: 0, delete: 0, unchanged: 0 },
      webhookSecrets: [{ ...secret, secret: expect.stringMatching(/^whsec_/) }],
    });
    const again = await apply({ config, owner, prune: true });
    expect(again).toMatchObject({ changes: [], summary: { unchanged: 1 } });
    expect(again).not.toHaveProperty('webhookSecrets');
  });

  it('are changed, kept with their secret and headers, and deleted with prune', async () => {
    const { owner, webhook } = newOwner();
    await apply({ owner, config: { webhooks: [webhook('a'), webhook('b')] } });
    const before = await webhooksOf(owner);
    const [, first] = before;
    await management
      .send('patch', `/tollgate/webhook/${first.webhookId}`, { headers: { authorization: 'kept' } })
      .expect(200);
    const config = { webhooks: [webhook('a', { events: ['tollgate.key.*'], batch: true, enabled: false })] };
    const { changes } = await apply({ owner, config, prune: true });
    expect(changes).toMatchObject([
      { action: 'update', id: `${owner}.a`, fields: { batch: { from: null, to: true } } },
      { action: 'delete', id: `${owner}.b` },
    ]);
    const { secretHint, webhookId } = first;
    expect(await webhooksOf(owner)).toEqual([
      expect.objectContaining({ secretHint, webhookId, batch: true, headers: { authorization: '***' } }),
    ]);
    const path = `/tollgate/audit-log?targetId=${webhookId}`;
    const { entries } = (await management.send('get', path).expect(200)).body;
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      ...['webhook.update', 'webhook.update', 'webhook.create'],
    ]);
    expect(JSON.stringify(entries)).not.toContain('of-the-receiver');
  });

  it('hear usage from the change on that adds it to their events', async () => {
    const { owner, webhook } = newOwner();
    const hearsUsage = async () => {
      const end = management.records.db.selectFrom('audit_log_ends').select('hears_usage');
      return (await end.executeTakeFirstOrThrow()).hears_usage;
    };
    await apply({ owner, config: { webhooks: [webhook('a')] } });
    expect(await hearsUsage()).toBe(false);
    await apply({ owner, config: { webhooks: [webhook('a', { events: ['tollgate.usage.*'] })] } });
    expect(await hearsUsage()).toBe(true);
    await apply({ owner, config: { webhooks: [webhook('a')] } });
    expect(await hearsUsage()).toBe(false);
  });

  it('that were changed elsewhere are a conflict, until force takes them over', async () => {
    const { owner, webhook } = newOwner();
    const config = { webhooks: [webhook('a')] };
    const fields = { ...config.webhooks[0], enabled: false };
    const { body: made } = await management.send('post', '/tollgate/webhook/create', fields).expect(201);
    const conflicts = [{ type: 'webhook', id: `${owner}.a`, reason: 'not_managed' }];
    expect(await apply({ owner, config }, 409)).toMatchObject({ code: 'managed_elsewhere', conflicts });
    await apply({ owner, config, force: true });
    expect(await webhooksOf(owner)).toMatchObject([{ webhookId: made.webhookId, enabled: true }]);
    await management.send('patch', `/tollgate/webhook/${made.webhookId}`, { enabled: false }).expect(200);
    const { conflicts: later } = await apply({ owner, config }, 409);
    expect(later).toEqual([{ ...conflicts[0], reason: 'changed_elsewhere' }]);
  });

  it('fail since the same instant as before, until their address is changed', async () => {
    const { owner, webhook } = newOwner();
    const failingSince = async () => (await webhooksOf(owner))[0].failingSince;
    await apply({ owner, config: { webhooks: [webhook('a')] } });
    const [{ webhookId }] = await webhooksOf(owner);
    const failing = { failing_since: new Date(0) };
    await management.records.db.updateTable('webhooks').set(failing).where('id', '=', webhookId).execute();
    await apply({ owner, config: { webhooks: [webhook('a', { description: 'named' })] } });
    expect(await failingSince()).toBe('1970-01-01T00:00:00Z');
    await apply({ owner, config: { webhooks: [webhook('a', { url: 'https://8.8.8.8/other' })] } });
    expect(await failingSince()).toBeNull();
  });

  it('that the gateway has disabled are no conflict, and are enabled by a change of them', async () => {
    const { owner, webhook } = newOwner();
    const config = (fields: object, limit: number) => ({
      plans: [{ rateLimitId: `${owner}-plan`, description: '', limit, period: 'day' }],
      webhooks: [webhook('a', fields)],
    });
    await apply({ owner, config: config({}, 1) });
    const disable = () =>
      sql`UPDATE webhooks SET enabled = false, disabled_reason = 'gone' WHERE managed_by = ${owner}`.execute(
        management.records.db,
      );
    await disable();
    const { changes } = await apply({ owner, config: config({}, 2) });
    expect(changes).toMatchObject([{ action: 'update', type: 'plan' }]);
    expect(await webhooksOf(owner)).toMatchObject([{ enabled: false, disabledReason: 'gone' }]);
    // What is exported changes nothing, and what says that it is disabled is applied once.
    const { plans, webhooks } = await exported(owner);
    expect(await apply({ owner, config: { plans, webhooks } })).toMatchObject({ changes: [] });
    await apply({ owner, config: config({ enabled: false }, 2) });
    expect(await webhooksOf(owner)).toMatchObject([{ enabled: false, disabledReason: null }]);
    expect(await apply({ owner, config: config({ enabled: false }, 2) })).toMatchObject({ changes: [] });
    await apply({ owner, config: config({}, 2) });
    await disable();
    await apply({ owner, config: config({ url: 'https://1.1.1.1/mended' }, 2) });
    expect(await webhooksOf(owner)).toMatchObject([{ enabled: true, disabledReason: null }]);
    // An administrator has decided that it stays disabled.
    await disable();
    const [{ webhookId }] = await webhooksOf(owner);
    await management.send('patch', `/tollgate/webhook/${webhookId}`, { enabled: false }).expect(200);
    const { conflicts } = await apply({ owner, config: config({ description: 'named' }, 2) }, 409);
    expect(conflicts).toMatchObject([{ type: 'webhook', reason: 'changed_elsewhere' }]);
  });

  it('are compared only where their addresses are allowed', async () => {
    const { owner, webhook } = newOwner();
    const config = { webhooks: [webhook('a', { url: 'https://10.0.0.1' })] };
    const { body } = await management.send('post', '/tollgate/config/diff', { owner, config }).expect(400);
    expect(body).toMatchObject({ code: 'webhook_url_not_allowed', rule: 'public_address' });
  });

  it('are applied with plans and keys or not at all', async () => {
    const { owner, webhook } = newOwner();
    const key = { externalId: `${owner}.k`, name: 'k', rateLimitId: 'not-there' };
    await apply({ owner, config: { keys: [key], webhooks: [webhook('a')] } }, 400);
    const plan = { rateLimitId: `${owner}.p`, description: '', limit: 1, period: 'hour' };
    const private_ = webhook('b', { url: 'https://10.0.0.1' });
    const rejected = await apply({ owner, config: { plans: [plan], webhooks: [private_] } }, 400);
    expect(rejected).toMatchObject({ code: 'webhook_url_not_allowed', rule: 'public_address' });
    expect(await exported(owner)).toEqual({ plans: [], keys: [] });
  });

  it('are exported without secrets and headers, and change nothing when applied', async () => {
    const { owner, webhook } = newOwner();
    const config = { webhooks: [webhook('a', { onlyTags: ['eu'] }), webhook('b', { enabled: false })] };
    await apply({ owner, config });
    const found = await exported(owner);
    expect(found).toEqual({ plans: [], keys: [], ...config });
    expect((await apply({ owner, config: found, prune: true })).changes).toEqual([]);
    const { secret } = await management.createToken({ scopes: ['keys:read', 'plans:read'] });
    expect(await exported(owner, secret)).toEqual({ plans: [], keys: [] });
  });

  it('keep headers at the receiver that they are for', async () => {
    const { owner, webhook } = newOwner();
    await apply({ owner, config: { webhooks: [webhook('a')] } });
    const [{ webhookId }] = await webhooksOf(owner);
    await management
      .send('patch', `/tollgate/webhook/${webhookId}`, { headers: { authorization: 'of the receiver' } })
      .expect(200);
    const moved = { webhooks: [webhook('a', { url: 'https://8.8.8.8/other' })] };
    const { errors } = await apply({ owner, config: moved }, 400);
    expect(errors).toMatchObject([{ field: 'config.webhooks[0].url' }]);
  });

  it('are rejected with the paths of their faults', async () => {
    const { owner, webhook } = newOwner();
    const config = {
      webhooks: [
        webhook('a', { events: ['tollgate.key.*', 'tollgate.key.create'] }),
        webhook('b'),
        webhook('b'),
      ],
    };
    const { errors } = await apply({ owner, config }, 400);
    expect(errors).toEqual([
      {
        field: 'config.webhooks[0].events[1]',
        message: expect.stringContaining('"tollgate.key.created"'),
      },
      { field: 'config.webhooks[2].externalId', message: expect.any(String) },
    ]);
    await apply({ owner, config: { webhooks: [webhook('a', { headers: { a: 'b' } })] } }, 400);
  });
});

describe('a token that applies webhooks', () => {
  it('needs the scopes of webhooks and of the types, before and after', async () => {
    const { owner, webhook } = newOwner();
    const config = { webhooks: [webhook('a', { events: ['tollgate.admin_token.*'] })] };
    const scopes = ['config:write', 'webhooks:write', 'keys:read'];
    const ci = await management.createToken({ scopes: ['config:write'] });
    const limited = await management.createToken({ scopes });
    expect(await apply({ owner, config }, 403, ci.secret)).toMatchObject({ requiredScope: 'webhooks:write' });
    expect(await apply({ owner, config }, 403, limited.secret)).toMatchObject({
      requiredScope: 'audit:read',
    });
    await apply({ owner, config });
    const less = { webhooks: [webhook('a')] };
    for (const body of [{ config: less }, { config: {}, prune: true }])
      expect(await apply({ owner, ...body }, 403, limited.secret)).toMatchObject({
        requiredScope: 'audit:read',
      });
    await management.sendAs(ci.secret, 'post', '/tollgate/config/diff', { owner, config: less }).expect(403);
    // Without a change to webhooks its own scope is enough.
    await apply({ owner, config, prune: true }, 200, ci.secret);
  });

  it('sees and makes only webhooks that have its tags', async () => {
    const { owner, webhook } = newOwner();
    const scopes = ['config:write', 'webhooks:write', 'webhooks:read', 'keys:read', 'plans:read'];
    const { secret } = await management.createToken({ scopes, onlyTags: ['eu'] });
    await apply({ owner, config: { webhooks: [webhook('other')] } });
    const { errors } = await apply({ owner, config: { webhooks: [webhook('a')] } }, 400, secret);
    expect(errors).toMatchObject([{ field: 'config.webhooks[0].onlyTags' }]);
    const config = { webhooks: [webhook('a', { onlyTags: ['eu'] })] };
    expect((await apply({ owner, config, prune: true }, 200, secret)).summary).toMatchObject({
      ...{ create: 1, delete: 0 },
    });
    expect(await exported(owner, secret)).toEqual({ plans: [], keys: [], ...config });
    expect(await webhooksOf(owner)).toHaveLength(2);
  });
});
