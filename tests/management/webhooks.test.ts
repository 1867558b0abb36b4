import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { WebhookUrlNotAllowed } from '../../src/errors.ts';
import { AddressPolicy } from '../../src/events/delivery/address-policy.ts';
import { until } from '../support/until.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const CREATE = '/tollgate/webhook/create';
const ABSENT = '/tollgate/webhook/whk_00000000000000000000000000';
/** A public address: nothing is sent to it, because nothing is delivered here. */
const URL_WITH_SECRET = 'https://8.8.8.8/services/T0/B0/capability';
const FIELDS = { url: URL_WITH_SECRET, events: ['tollgate.key.*'] };

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

interface Made {
  readonly webhookId: string;
  readonly secret: string;
}
const at = ({ webhookId }: Made) => `/tollgate/webhook/${webhookId}`;

async function create(fields: object = {}): Promise<Made> {
  return (await management.send('post', CREATE, { ...FIELDS, ...fields }).expect(201)).body;
}

/** A token that may do everything with webhooks, and what `scopes` allow. */
async function tokenWith(scopes: readonly string[], fields: object = {}): Promise<string> {
  const all = ['webhooks:read', 'webhooks:write', ...scopes];
  return (await management.createToken({ name: 'hooks', scopes: all, ...fields })).secret;
}

describe('a webhook', () => {
  it('is made with a secret that is shown once and stored nowhere in the clear', async () => {
    const fields = { ...FIELDS, description: 'Chat', headers: { Authorization: 'Bearer of-the-receiver' } };
    const { body, headers } = await management.send('post', CREATE, fields).expect(201);
    const { secret, ...shown } = body;
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(shown).toEqual({
      webhookId: expect.stringMatching(/^whk_[0-9A-Z]{26}$/),
      ...{ externalId: null, managedBy: null },
      ...FIELDS,
      ...{
        onlyTags: [],
        description: 'Chat',
        enabled: true,
        batch: false,
        headers: { authorization: '***' },
      },
      secretHint: `${secret.slice(0, 10)}…${secret.slice(-5, -1)}`,
      ...{ rotation: null, disabledReason: null, failingSince: null },
      ...{ createdAt: '2026-02-03T04:05:06Z', lastUpdated: '2026-02-03T04:05:06Z' },
    });
    expect(headers.location).toBe(at(body));
    expect((await management.send('get', at(body)).expect(200)).body).toEqual(shown);
    expect((await management.send('get', '/tollgate/webhook').expect(200)).body.webhooks).toContainEqual(
      shown,
    );
    const { db } = management.records;
    const rows = [
      await db.selectFrom('webhooks').selectAll().execute(),
      await db.selectFrom('audit_log').selectAll().execute(),
      await db.selectFrom('events').selectAll().execute(),
    ].flat();
    const stored = JSON.stringify(rows, (_name, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('latin1') : value,
    );
    for (const each of [secret.slice(10, -5), 'of-the-receiver']) expect(stored).not.toContain(each);
    const logged = JSON.stringify(rows.slice(1));
    expect(logged.replaceAll(URL_WITH_SECRET, '')).toContain('https://8.8.8.8/…');
  });

  it('keeps the path of its address, which may be a capability, out of the audit log and the events', async () => {
    await create();
    const { db } = management.records;
    const entries = await db.selectFrom('audit_log').select('changes').execute();
    const events = await db.selectFrom('events').select('data').execute();
    expect(JSON.stringify([entries, events])).not.toContain('capability');
  });

  it.each([
    [{}, 'url'],
    [{ ...FIELDS, url: 'https://8.8.8.8/\r\nx' }, 'url'],
    [{ ...FIELDS, events: [] }, 'events'],
    [{ ...FIELDS, events: ['tollgate.key.*x'] }, 'events[0]'],
    [{ ...FIELDS, onlyTags: ['No'] }, 'onlyTags[0]'],
    [{ ...FIELDS, batch: 'yes' }, 'batch'],
    [{ ...FIELDS, headers: { a: 'x\r\nb: y' } }, 'headers.a'],
    [{ ...FIELDS, headers: { a: 'x\ny' } }, 'headers.a'],
    [{ ...FIELDS, headers: { host: 'other' } }, 'headers.host'],
    [{ ...FIELDS, headers: { 'Webhook-Signature': 'x' } }, 'headers.Webhook-Signature'],
    [{ ...FIELDS, headers: { a: 'x', A: 'y' } }, 'headers.A'],
    [{ ...FIELDS, secret: 'mine' }, 'secret'],
  ])('is not made from %j', async (fields, field) => {
    const { body } = await management.send('post', CREATE, fields).expect(400);
    expect(body.errors).toContainEqual(expect.objectContaining({ field }));
  });

  it('has at most ten headers with proper names', async () => {
    const many = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`x-${index}`, 'y']));
    await management.send('post', CREATE, { ...FIELDS, headers: many }).expect(400);
    await management.send('post', CREATE, { ...FIELDS, headers: { 'a b': 'y' } }).expect(400);
    await management.send('post', CREATE, { ...FIELDS, headers: { 'a\r\nb': 'y' } }).expect(400);
  });

  it('of an unknown type is rejected with the nearest known type', async () => {
    const { body } = await management.send('post', CREATE, { ...FIELDS, events: ['tollgate.key.create'] });
    expect(body.errors[0].message).toContain('"tollgate.key.created"');
  });

  it.each([
    ['http://8.8.8.8/', 'https_only'],
    ['https://169.254.169.254/latest/meta-data', 'public_address'],
    ['https://2130706433/', 'public_address'],
    ['https://[::ffff:10.0.0.1]/', 'public_address'],
    ['https://user:pass@8.8.8.8/', 'no_credentials'],
  ])('may not lead to %s', async (url, rule) => {
    const { body } = await management.send('post', CREATE, { ...FIELDS, url }).expect(400);
    expect(body).toMatchObject({ code: 'webhook_url_not_allowed', rule });
    const made = await create();
    await management.send('patch', at(made), { url }).expect(400);
  });

  it('is changed, found by its ETag, and deleted', async () => {
    const made = await create();
    const { headers } = await management.send('get', at(made)).expect(200);
    const changed = await management
      .send('patch', at(made), { description: 'New' })
      .set('If-Match', String(headers.etag));
    expect(changed.body).toMatchObject({ description: 'New' });
    expect(changed.headers.etag).not.toBe(headers.etag);
    await management.send('delete', at(made)).set('If-Match', String(headers.etag)).expect(412);
    await management.send('delete', at(made)).expect(200);
    await management.send('get', at(made)).expect(404);
  });

  it('is listed once over all pages, the newest first', async () => {
    const made = [await create(), await create(), await create()].map(({ webhookId }) => webhookId);
    const listed: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await management.send('get', `/tollgate/webhook?limit=1${cursor}`).expect(200);
      listed.push(...body.webhooks.map(({ webhookId }: Made) => webhookId));
      if (body.nextCursor === undefined) break;
      cursor = `&cursor=${body.nextCursor}`;
    }
    expect(listed.slice(0, 3)).toEqual(made.toReversed());
    expect(new Set(listed).size).toBe(listed.length);
    const whole = await management.send('get', `/tollgate/webhook?limit=${listed.length}`).expect(200);
    expect(whole.body.webhooks).toHaveLength(listed.length);
    expect(whole.body.nextCursor).toBeUndefined();
  });

  it('does not count as failing any more at another address', async () => {
    const made = await create();
    const failing_since = new Date('2026-02-03T04:05:06Z');
    await management.records.db
      .updateTable('webhooks')
      .set({ failing_since })
      .where('id', '=', made.webhookId)
      .execute();
    const { body } = await management.send('patch', at(made), { description: 'Same' }).expect(200);
    expect(body.failingSince).toBe('2026-02-03T04:05:06Z');
    const moved = await management.send('patch', at(made), { url: 'https://9.9.9.9/hook' }).expect(200);
    expect(moved.body.failingSince).toBeNull();
  });

  it('is made once for one Idempotency-Key', async () => {
    const send = () => management.send('post', CREATE, FIELDS).set('Idempotency-Key', 'a-webhook');
    const first = await send().expect(201);
    const second = await send().expect(201);
    expect(second.body).toEqual(first.body);
    expect(second.headers['idempotency-replayed']).toBe('true');
  });

  it('that waits for a slow name server with an Idempotency-Key holds up no other change', async () => {
    const changed = await create();
    const nameServer = Promise.withResolvers<void>();
    const check = jest.spyOn(AddressPolicy.prototype, 'check').mockReturnValue(nameServer.promise);
    // As many as there are connections to Postgres, and more.
    const sent = Array.from({ length: 20 }, async (_, index) =>
      management.send('post', CREATE, FIELDS).set('Idempotency-Key', `slow-${index}`),
    );
    try {
      await until(() => check.mock.calls.length === sent.length);
      await management.send('patch', at(changed), { description: 'changed' }).expect(200);
    } finally {
      nameServer.resolve();
      expect((await Promise.all(sent)).map(({ status }) => status)).toEqual(sent.map(() => 201));
      check.mockRestore();
    }
  });

  it('keeps the response for an Idempotency-Key, whatever DNS says of its address later', async () => {
    const notAllowed = new WebhookUrlNotAllowed('public_address', 'as the test wants');
    const send = (key: string) => management.send('post', CREATE, FIELDS).set('Idempotency-Key', key);
    const made = await send('moves').expect(201);
    const check = jest.spyOn(AddressPolicy.prototype, 'check').mockRejectedValue(notAllowed);
    const rejected = await send('not-allowed').expect(400);
    expect(rejected.body.code).toBe('webhook_url_not_allowed');
    expect((await send('moves').expect(201)).body).toEqual(made.body);
    check.mockRestore();
    expect((await send('not-allowed').expect(400)).body).toEqual(rejected.body);
  });

  it('is given another secret, with a grace period once at a time', async () => {
    const made = await create();
    const rotate = (graceSeconds: number) => management.send('post', `${at(made)}/rotate`, { graceSeconds });
    const { body } = await rotate(60).expect(200);
    expect(body.secret).not.toBe(made.secret);
    expect(body.previousValidUntil).toBe('2026-02-03T04:06:07Z');
    expect((await rotate(60).expect(409)).body.code).toBe('rotation_in_progress');
    expect((await rotate(0).expect(200)).body.previousValidUntil).toBeNull();
  });

  it('that is unknown is 404 everywhere', async () => {
    for (const path of [ABSENT, '/tollgate/webhook/nope', `${ABSENT}/deliveries`])
      expect((await management.send('get', path).expect(404)).body.code).toBe('webhook_not_found');
    await management.send('patch', ABSENT, { description: '' }).expect(404);
    await management.send('delete', ABSENT).expect(404);
    await management.send('post', `${ABSENT}/rotate`, { graceSeconds: 0 }).expect(404);
    await management.send('post', `${ABSENT}/test`).expect(404);
    const made = await create();
    const resend = `${at(made)}/deliveries/dlv_00000000000000000000000000/resend`;
    expect((await management.send('post', resend).expect(404)).body.code).toBe('delivery_not_found');
  });

  it('does not send its headers to another receiver unless they are written again', async () => {
    const made = await create({ headers: { authorization: 'Bearer of-the-receiver' } });
    const { body } = await management.send('patch', at(made), { url: 'https://1.1.1.1/' }).expect(400);
    expect(body.errors).toContainEqual(expect.objectContaining({ field: 'headers' }));
    await management.send('patch', at(made), { url: 'https://8.8.8.8/other' }).expect(200);
    const both = { url: 'https://1.1.1.1/', headers: null };
    expect((await management.send('patch', at(made), both).expect(200)).body.headers).toEqual({});
  });

  it('is tested with an event that only it gets, which is listed among its deliveries', async () => {
    const made = await create();
    const { body } = await management.send('post', `${at(made)}/test`).expect(200);
    const { deliveries } = (await management.send('get', `${at(made)}/deliveries`).expect(200)).body;
    expect(deliveries).toMatchObject([
      { deliveryId: body.deliveryId, eventType: 'tollgate.webhook.test', status: 'pending', attempts: [] },
    ]);
    const counted = async (status: string) =>
      (await management.send('get', `${at(made)}/deliveries?count=true&status=${status}`).expect(200)).body;
    expect(await counted('pending')).toEqual({ deliveries, total: 1 });
    expect(await counted('failed')).toEqual({ deliveries: [], total: 0 });
    await management.send('patch', at(made), { enabled: false }).expect(200);
    expect((await management.send('post', `${at(made)}/test`).expect(409)).body.code).toBe(
      'webhook_disabled',
    );
  });

  describe('that is deleted once a request has read it', () => {
    async function codeAndEntries(made: Made, path: string): Promise<readonly unknown[]> {
      const { webhooks } = management.records;
      const find = webhooks.find.bind(webhooks);
      const found = jest.spyOn(webhooks, 'find').mockImplementationOnce(async (id) => {
        const webhook = await find(id);
        await management.send('delete', at(made)).expect(200);
        return webhook;
      });
      const { status, body } = await management.send('post', path);
      found.mockRestore();
      const log = await management.send('get', `/tollgate/audit-log?targetId=${made.webhookId}`).expect(200);
      const actions = log.body.entries.map(({ action }: { readonly action: string }) => action);
      return [status, body.code, ...actions];
    }

    it('gets no test event: 404, and no entry of one', async () => {
      const made = await create();
      expect(await codeAndEntries(made, `${at(made)}/test`)).toEqual([
        404,
        'webhook_not_found',
        'webhook.delete',
        'webhook.create',
      ]);
    });

    it('gets no delivery again: 404, and no entry of one', async () => {
      const made = await create();
      const { deliveryId } = (await management.send('post', `${at(made)}/test`).expect(200)).body;
      const ended = { status: 'failed', next_attempt_at: null, ended_at: new Date() } as const;
      await management.records.db.updateTable('webhook_deliveries').set(ended).execute();
      expect(await codeAndEntries(made, `${at(made)}/deliveries/${deliveryId}/resend`)).toEqual([
        404,
        'webhook_not_found',
        'webhook.delete',
        'webhook.test',
        'webhook.create',
      ]);
    });
  });
});

describe('a token', () => {
  it.each([
    [['tollgate.key.*'], 'keys:read'],
    [['tollgate.plan.created'], 'keys:read'],
    [['tollgate.limit.reset'], 'keys:read'],
    [['tollgate.admin_token.*'], 'audit:read'],
  ])('needs for a webhook of %j also %s', async (events, requiredScope) => {
    const other = ['keys:read', 'usage:read', 'audit:read'].filter((scope) => scope !== requiredScope);
    const { body } = await management
      .sendAs(await tokenWith(other), 'post', CREATE, { ...FIELDS, events })
      .expect(403);
    expect(body).toMatchObject({ code: 'missing_scope', requiredScope });
    await management
      .sendAs(await tokenWith([requiredScope]), 'post', CREATE, { ...FIELDS, events })
      .expect(201);
  });

  it('changes no webhook that hears more than the token may', async () => {
    const made = await create({ events: ['*'] });
    const secret = await tokenWith(['keys:read']);
    const attempts = [
      management.sendAs(secret, 'patch', at(made), { url: 'https://1.1.1.1/' }),
      management.sendAs(secret, 'patch', at(made), { events: ['tollgate.key.*'] }),
      management.sendAs(secret, 'post', `${at(made)}/rotate`, { graceSeconds: 0 }),
      management.sendAs(secret, 'post', `${at(made)}/test`),
    ];
    for (const attempt of attempts) expect((await attempt.expect(403)).body.code).toBe('missing_scope');
  });

  it('reads no delivery of a type that it may not hear, also of earlier subscriptions', async () => {
    const made = await create({ events: ['*'] });
    const event = { id: 'aud_1', webhookId: made.webhookId, createdAtMs: management.clock.nowMs() };
    const rest = {
      eventIds: ['aud_1'],
      tags: [],
      eventTags: null,
      isBatch: false,
      body: '{"secret":"of admins"}',
    };
    const webhook = await management.records.webhooks.find(made.webhookId);
    if (webhook === undefined) throw new Error('there is no webhook');
    const id = 'dlv_0123456789ABCDEFGHJKMNPQRS';
    await management.records.webhooks.addDelivery(
      { ...event, ...rest, id, eventType: 'tollgate.admin_token.created' },
      webhook,
      {
        ...{ actor: { type: 'root', id: null, name: 'root' }, atMs: management.clock.nowMs(), reason: null },
        ...{ requestId: '', address: '', onlyTags: [], expects: undefined },
      },
    );
    await management.send('patch', at(made), { events: ['tollgate.key.*'] }).expect(200);
    const secret = await tokenWith(['keys:read']);
    const { body } = await management.sendAs(secret, 'get', `${at(made)}/deliveries?count=true`).expect(200);
    expect(body).toEqual({ deliveries: [], total: 0 });
    const resend = `${at(made)}/deliveries/${id}/resend`;
    expect((await management.sendAs(secret, 'post', resend).expect(404)).body.code).toBe(
      'delivery_not_found',
    );
    expect((await management.send('get', `${at(made)}/deliveries`).expect(200)).body.deliveries).toHaveLength(
      1,
    );
  });

  it('limited to tags reads no delivery from before the webhook was limited to them', async () => {
    const made = await create();
    await management.send('post', `${at(made)}/test`).expect(200);
    await management.send('patch', at(made), { onlyTags: ['us'] }).expect(200);
    await management.send('post', `${at(made)}/test`).expect(200);
    const secret = await tokenWith(['keys:read'], { onlyTags: ['us'] });
    const { body } = await management.sendAs(secret, 'get', `${at(made)}/deliveries?count=true`).expect(200);
    expect(body).toEqual({ deliveries: [expect.anything()], total: 1 });
    const all = await management.send('get', `${at(made)}/deliveries?count=true`).expect(200);
    expect(all.body.total).toBe(2);
  });

  it('limited to tags makes, sees and changes only webhooks with at least these tags', async () => {
    const open = await create();
    const secret = await tokenWith(['keys:read'], { onlyTags: ['eu'] });
    const { body: made } = await management.sendAs(secret, 'post', CREATE, FIELDS).expect(201);
    expect(made.onlyTags).toEqual(['eu']);
    const { body } = await management.sendAs(secret, 'get', '/tollgate/webhook').expect(200);
    expect(body.webhooks.map(({ webhookId }: Made) => webhookId)).toEqual([made.webhookId]);
    await management.sendAs(secret, 'get', at(open)).expect(404);
    await management.sendAs(secret, 'patch', at(open), { description: 'x' }).expect(404);
    await management.sendAs(secret, 'delete', at(open)).expect(404);
    await management.sendAs(secret, 'get', `${at(open)}/deliveries`).expect(404);
    const widened = await management.sendAs(secret, 'patch', at(made), { onlyTags: [] }).expect(200);
    expect(widened.body.onlyTags).toEqual(['eu']);
  });

  it('limited to tags leaves a webhook in the same state that it changes to what it is', async () => {
    const made = await create({ onlyTags: ['us', 'eu'] });
    const { etag } = (await management.send('get', at(made)).expect(200)).headers;
    const secret = await tokenWith(['keys:read'], { onlyTags: ['eu'] });
    const same = { description: '', onlyTags: ['us', 'eu'] };
    const { headers, body } = await management.sendAs(secret, 'patch', at(made), same).expect(200);
    expect([headers.etag, body.onlyTags]).toEqual([etag, ['us', 'eu']]);
  });
});
