import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startManagement, type TestManagement, UNUSED } from './start-management.ts';

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

interface Resource {
  readonly path: string;
  readonly etag: string;
}

async function keyResource(): Promise<Resource> {
  const { body, headers } = await management
    .send('post', '/consumer-api-key/create', { name: 'n' })
    .expect(201);
  expect(headers.location).toBe(`/consumer-api-key/${body.id}`);
  return { path: headers.location ?? '', etag: headers.etag ?? '' };
}

async function planResource(): Promise<Resource> {
  const { rateLimitId } = await management.createPlan();
  const path = `/rate-limit/${rateLimitId}`;
  return { path, etag: await etagOf(path) };
}

async function etagOf(path: string): Promise<string> {
  return (await management.send('get', path).expect(200)).headers.etag ?? '';
}

it.each([
  ['key', keyResource, '{"metadata": {"balance": [-0, -0.0, -0e5]}}'],
  ['plan', planResource, '{"costs": [{"path": "/free", "cost": -0}]}'],
] as const)('the ETag of a %s stays when it gets minus zero again', async (_what, make, change) => {
  const { path } = await make();
  const patch = () => management.send('patch', path).type('json').send(change).expect(200);
  expect((await patch()).headers.etag).toBe((await patch()).headers.etag);
});

describe.each([
  ['key', keyResource, { name: 'another' }, { enabled: false }],
  ['plan', planResource, { limit: 7 }, { description: 'another' }],
] as const)('the ETag of a %s', (_what, make, change, otherChange) => {
  it('is strong, and the same where it is made, shown and changed', async () => {
    const { path, etag } = await make();
    expect(etag).toMatch(/^"[0-9a-z]+-[0-9a-z]+"$/);
    expect(await etagOf(path)).toBe(etag);
    const { headers } = await management.send('patch', path, change).expect(200);
    expect(headers.etag).not.toBe(etag);
    expect(await etagOf(path)).toBe(headers.etag);
  });

  it('and lastUpdated stay when a change changes nothing', async () => {
    const { path } = await make();
    const first = await management.send('patch', path, change).expect(200);
    management.clock.advance(5000);
    const second = await management.send('patch', path, change).expect(200);
    expect([second.headers.etag, second.body.lastUpdated]).toEqual([
      first.headers.etag,
      first.body.lastUpdated,
    ]);
  });

  it('lets one of two changes of the same state through, also when they come at once', async () => {
    const { path, etag } = await make();
    const responses = await Promise.all(
      [change, otherChange].map((body) => management.send('patch', path, body).set('If-Match', etag)),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 412]);
    expect(responses.find(({ status }) => status === 412)?.body.code).toBe('version_mismatch');
    const changed = responses.find(({ status }) => status === 200);
    expect((await management.send('get', path)).body).toMatchObject({
      lastUpdated: changed?.body.lastUpdated,
    });
    expect(await etagOf(path)).toBe(changed?.headers.etag);
  });

  it('keeps a changed resource from being deleted', async () => {
    const { path, etag } = await make();
    await management.send('patch', path, change).expect(200);
    await management.send('delete', path).set('If-Match', etag).expect(412);
    await management
      .send('delete', path)
      .set('If-Match', await etagOf(path))
      .expect(200);
  });

  it.each([
    ['*', 200],
    ['"other"', 412],
    ['W/ETAG', 412],
    ['"other", ETAG', 200],
    ['unquoted', 400],
  ])('is matched by If-Match: %s with %d', async (value, status) => {
    const { path, etag } = await make();
    await management.send('patch', path, change).set('If-Match', value.replace('ETAG', etag)).expect(status);
  });

  it('is not looked at when the resource is missing, or the body is invalid', async () => {
    const { path, etag } = await make();
    await management.send('patch', path, {}).set('If-Match', '"other"').expect(400);
    await management.send('delete', path).expect(200);
    await management.send('patch', path, change).set('If-Match', etag).expect(404);
    await management.send('delete', path).set('If-Match', '*').expect(404);
  });
});

it.each([
  ['key', '/consumer-api-key/create', { name: 'n' }],
  ['admin token', '/tollgate/admin-token/create', { name: 'n', scopes: ['keys:read'] }],
])('rotates the %s only in the state that If-Match requires', async (_what, create, fields) => {
  const { headers } = await management.send('post', create, fields).expect(201);
  const path = headers.location ?? '';
  const rotate = (etag = '') =>
    management.send('post', `${path}/rotate`, { graceSeconds: 0 }).set('If-Match', etag);
  await management.send('patch', path, { name: 'another' }).expect(200);
  expect((await rotate(headers.etag).expect(412)).body.code).toBe('version_mismatch');
  await rotate(await etagOf(path)).expect(200);
});

it('applies a plan to a key only in the state that If-Match requires', async () => {
  const { path, etag } = await keyResource();
  const { rateLimitId } = await management.createPlan();
  const body = { consumerApiKeyId: path.split('/').at(-1), rateLimitId };
  const apply = (condition: string) =>
    management.send('post', '/api-keys/apply-rate-limit', body).set('If-Match', condition);
  const appliedPlan = async () => (await management.send('get', path).expect(200)).body.rateLimitId;
  await management.send('patch', path, { name: 'another' }).expect(200);
  expect((await apply(etag).expect(412)).body.code).toBe('version_mismatch');
  expect(await appliedPlan()).toBeNull();
  await apply(await etagOf(path)).expect(200);
  expect(await appliedPlan()).toBe(rateLimitId);
  await apply('*').expect(200);
});

it.each([
  ['key', '/consumer-api-key', { name: 'n' }],
  ['plan', '/rate-limit', { rateLimitId: 'shown', description: 'd', limit: 1, period: 'day' }],
  ['admin token', '/tollgate/admin-token', { name: 'n', scopes: ['keys:read'] }],
  ['webhook', '/tollgate/webhook', { url: 'https://hooks.example.com/', events: ['tollgate.key.*'] }],
])(
  'GET and HEAD show a %s, and the list of all, whatever If-None-Match says',
  async (_what, list, fields) => {
    const { headers } = await management.send('post', `${list}/create`, fields).expect(201);
    const path = headers.location ?? '';
    const { body, headers: shown } = await management.send('get', path).expect(200);
    const { etag = '' } = shown;
    expect(etag).not.toBe('');
    for (const condition of [etag, `W/${etag}`, '*']) {
      const again = await management.send('get', path).set('If-None-Match', condition);
      expect([again.status, again.body, again.headers.etag]).toEqual([200, body, etag]);
      const head = await management.send('head', path).set('If-None-Match', condition);
      expect([head.status, head.headers['content-length']]).toEqual([200, shown['content-length']]);
      const whole = await management.send('get', list).set('If-None-Match', condition);
      expect([whole.status, whole.body]).toEqual([200, expect.any(Object)]);
      await management.send('head', list).set('If-None-Match', condition).expect(200);
    }
  },
);

it('the ETag of a key stays when it is used, and changes when a plan is applied', async () => {
  const { path, etag } = await keyResource();
  const id = path.split('/').at(-1) ?? '';
  management.usages.set(id, { ...UNUSED, requests: 1, successful: 1 });
  expect(await etagOf(path)).toBe(etag);
  const { rateLimitId } = await management.createPlan();
  await management
    .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
    .expect(200);
  expect(await etagOf(path)).not.toBe(etag);
});

it('the ETag of a plan that is made again is another one', async () => {
  const { path, etag } = await planResource();
  await management.send('delete', path).expect(200);
  management.clock.advance(1);
  const { headers } = await management.send('put', path, { limit: 10, period: 'hour' }).expect(201);
  expect(headers.location).toBe(path);
  expect(headers.etag).not.toBe(etag);
});

describe('PUT /rate-limit/{rateLimitId}', () => {
  const terms = { limit: 5, period: 'day' };

  it('makes no plan with If-Match', async () => {
    await management.send('put', '/rate-limit/not-made', terms).set('If-Match', '*').expect(412);
    await management.send('get', '/rate-limit/not-made').expect(404);
  });

  it('replaces no plan with If-None-Match: *', async () => {
    const { path, etag } = await planResource();
    await management.send('put', path, terms).set('If-None-Match', '*').expect(412);
    expect(await etagOf(path)).toBe(etag);
    await management.send('put', '/rate-limit/made-once', terms).set('If-None-Match', '*').expect(201);
  });

  it('makes one plan when several want to make it at once', async () => {
    const responses = await Promise.all(
      [1, 2, 3, 4].map((limit) =>
        management.send('put', '/rate-limit/wanted', { ...terms, limit }).set('If-None-Match', '*'),
      ),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([201, 412, 412, 412]);
  });
});
