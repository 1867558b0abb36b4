import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startManagement, type TestManagement } from './start-management.ts';

const BASE = { description: 'For partners', limit: 1000, period: 'hour' };
const ADDITIONAL = [
  { limitId: 'burst', limit: 10, period: 'second' },
  { limitId: 'search', limit: 100, period: 'hour', match: [{ methods: ['POST'], path: '/v1/search/**' }] },
  { limitId: 'tenant', limit: 500, period: 'day', per: 'customer' },
  { limitId: 'next', limit: 800, period: 'hour', mode: 'shadow' },
];
const COSTS = [
  { methods: ['POST'], path: '/v1/batch/{id}', cost: 5 },
  { path: '/v1/ping', cost: 0 },
  { path: '/v1/chat', cost: 'response', reserve: 7 },
];

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

async function rejected(body: object): Promise<readonly { field: string; message: string }[]> {
  const id = `rejected-${Math.random().toString(36).slice(2)}`;
  const response = await management.send('put', `/rate-limit/${id}`, { ...BASE, ...body }).expect(400);
  expect(response.body.code).toBe('invalid_body');
  await management.send('get', `/rate-limit/${id}`).expect(404);
  return response.body.errors;
}

describe('a plan with several limits', () => {
  it('echoes all of it when it is created, and shows it later', async () => {
    const plan = { rateLimitId: 'several', ...BASE, additionalLimits: ADDITIONAL, costs: COSTS };
    const created = await management.send('post', '/rate-limit/create', plan).expect(201);
    expect(created.body).toEqual({ ...plan, createdAt: '2026-02-03T04:05:06Z' });
    const shown = await management.send('get', '/rate-limit/several').expect(200);
    expect(shown.body).toEqual({ ...created.body, lastUpdated: created.body.createdAt });
    const { body } = await management.send('get', '/rate-limit').expect(200);
    expect(body.rateLimits).toContainEqual(shown.body);
  });

  it('shows a plan of four fields with no others', async () => {
    const { rateLimitId } = await management.createPlan();
    const { body } = await management.send('get', `/rate-limit/${rateLimitId}`).expect(200);
    expect(Object.keys(body)).toEqual([
      'rateLimitId',
      'description',
      'limit',
      'period',
      'createdAt',
      'lastUpdated',
    ]);
  });

  it('has its lists replaced by a PATCH, and the rest left alone', async () => {
    const { rateLimitId } = await management.createPlan({ additionalLimits: ADDITIONAL, costs: COSTS });
    const path = `/rate-limit/${rateLimitId}`;
    const changed = await management
      .send('patch', path, { additionalLimits: ADDITIONAL.slice(0, 1) })
      .expect(200);
    expect(changed.body).toMatchObject({ additionalLimits: ADDITIONAL.slice(0, 1), costs: COSTS });
    const emptied = await management.send('patch', path, { additionalLimits: [], costs: [] }).expect(200);
    expect(emptied.body).not.toHaveProperty('additionalLimits');
    expect(emptied.body).not.toHaveProperty('costs');
  });

  it('takes the bounds: seven limits, 32 costs, ids of 32 characters', async () => {
    const additionalLimits = Array.from({ length: 7 }, (_, index) => ({
      limitId: `${index}`.padEnd(32, 'x'),
      limit: 999_999_999_999_999,
      period: '366 days',
    }));
    const costs = Array.from({ length: 32 }, (_, index) => ({ path: `/p/${index}`, cost: 1000 }));
    await management.createPlan({ additionalLimits, costs, limit: 1000 });
  });

  it.each([
    ['additionalLimits[1].period', { additionalLimits: [ADDITIONAL[0], { ...ADDITIONAL[1], period: 'x' }] }],
    ['additionalLimits[0].limit', { additionalLimits: [{ ...ADDITIONAL[0], limit: 0 }] }],
    ['additionalLimits[0].limit', { additionalLimits: [{ limitId: 'a', period: 'day' }] }],
    ['additionalLimits[0].limitId', { additionalLimits: [{ ...ADDITIONAL[0], limitId: 'main' }] }],
    ['additionalLimits[0].limitId', { additionalLimits: [{ ...ADDITIONAL[0], limitId: 'a b' }] }],
    ['additionalLimits[0].limitId', { additionalLimits: [{ ...ADDITIONAL[0], limitId: 'x'.repeat(33) }] }],
    ['additionalLimits[1].limitId', { additionalLimits: [ADDITIONAL[0], ADDITIONAL[0]] }],
    ['additionalLimits[0].per', { additionalLimits: [{ ...ADDITIONAL[0], per: 'tenant' }] }],
    ['additionalLimits[0].mode', { additionalLimits: [{ ...ADDITIONAL[0], mode: 'off' }] }],
    ['additionalLimits[0].mdoe', { additionalLimits: [{ ...ADDITIONAL[0], mdoe: 'shadow' }] }],
    ['additionalLimits[0].match', { additionalLimits: [{ ...ADDITIONAL[0], match: [] }] }],
    [
      'additionalLimits[0].match[1].path',
      { additionalLimits: [{ ...ADDITIONAL[0], match: [{ path: '/a' }, { path: 'b' }] }] },
    ],
    [
      'additionalLimits[0].match[0].methods[0]',
      { additionalLimits: [{ ...ADDITIONAL[0], match: [{ path: '/a', methods: ['get'] }] }] },
    ],
    ['additionalLimits[0]', { additionalLimits: ['burst'] }],
    ['additionalLimits', { additionalLimits: Array.from({ length: 8 }, () => ADDITIONAL[0]) }],
    ['additionalLimits', { additionalLimits: {} }],
    ['costs[0].path', { costs: [{ path: '/a/**/b', cost: 1 }] }],
    ['costs[0].path', { costs: [{ cost: 1 }] }],
    ['costs[0].cost', { costs: [{ path: '/a', cost: -1 }] }],
    ['costs[0].cost', { costs: [{ path: '/a', cost: 1.5 }] }],
    ['costs[0].cost', { costs: [{ path: '/a', cost: 'header' }] }],
    ['costs[0].cost', { costs: [{ path: '/a', cost: 5, reserve: 1 }] }],
    ['costs', { costs: Array.from({ length: 33 }, () => ({ path: '/a', cost: 1 })) }],
  ])('rejects %s, and stores nothing', async (field, body) => {
    expect((await rejected(body)).map((fault) => fault.field)).toContain(field);
  });

  it.each([
    [{ costs: [{ path: '/a', cost: 1001 }] }, 'costs[0].cost', '"main"'],
    [{ costs: [{ path: '/a', cost: 'response', reserve: 1001 }] }, 'costs[0].reserve', '"main"'],
    [{ additionalLimits: ADDITIONAL, costs: [{ path: '/a', cost: 11 }] }, 'costs[0].cost', '"burst"'],
    [
      { additionalLimits: [ADDITIONAL[1]], costs: [{ path: '/v1/{any}/x', cost: 101 }] },
      'costs[0].cost',
      '"search"',
    ],
  ])('rejects a cost that would never be allowed: %j', async (body, field, named) => {
    const [fault] = await rejected(body);
    expect(fault).toMatchObject({ field, message: expect.stringContaining(named) });
  });

  it.each([
    { additionalLimits: [ADDITIONAL[1]], costs: [{ path: '/v1/other', cost: 101 }] },
    { additionalLimits: [ADDITIONAL[1]], costs: [{ path: '/v1/search/x', methods: ['GET'], cost: 101 }] },
    { additionalLimits: [ADDITIONAL[3]], costs: [{ path: '/a', cost: 900 }] },
  ])('takes a cost that no enforced limit which it meets is below: %j', async (body) => {
    await management.createPlan({ ...BASE, ...body });
  });

  it('rejects a PATCH that would leave a cost above a limit', async () => {
    const { rateLimitId } = await management.createPlan({ ...BASE, costs: [{ path: '/a', cost: 50 }] });
    const { body } = await management.send('patch', `/rate-limit/${rateLimitId}`, { limit: 49 }).expect(400);
    expect(body.errors).toMatchObject([{ field: 'costs[0].cost' }]);
    expect((await management.send('get', `/rate-limit/${rateLimitId}`)).body.limit).toBe(1000);
  });
});

describe('the patterns of a plan', () => {
  const listsOf = (path: string) => ({
    additionalLimits: [{ limitId: 'some', limit: 10, period: 'hour', match: [{ methods: ['GET'], path }] }],
    costs: [{ path, cost: 2 }],
  });

  it.each([
    ['/V1/Search/**', '/v1/search/**'],
    ['/v1/%53%65arch', '/v1/search'],
    ['/a%2Fb', '/a/b'],
    ['/a%20b/caf%c3%a9', '/a%20b/caf%C3%A9'],
    ['/%2a/{userId}', '/%2A/{userId}'],
    ['/v1/search/', '/v1/search/'],
  ])('are stored in canonical form: %s as %s', async (path, canonical) => {
    const { rateLimitId } = await management.createPlan(listsOf(path));
    const shown = await management.send('get', `/rate-limit/${rateLimitId}`).expect(200);
    expect(shown.body).toMatchObject(listsOf(canonical));
    const changed = await management.send('patch', `/rate-limit/${rateLimitId}`, listsOf(path)).expect(200);
    expect(changed.body).toEqual(shown.body);
    const put = await management.send('put', `/rate-limit/${rateLimitId}`, { ...BASE, ...listsOf(path) });
    expect(put.body).toMatchObject(listsOf(canonical));
  });

  it.each([
    ['/v1/search;a=b/x', 'write "/v1/search/x"'],
    ['/v1/search%3Ba', 'write "/v1/search"'],
    ['/V1//%73earch/**', 'write "/v1/search/**"'],
    ['/v1/%2Fsearch', 'write "/v1/search"'],
    ['/v1/;a/search', 'write "/v1/search"'],
    ['/v1/%2e%2e/search', 'which no request can have'],
    ['/v1/search%00', 'which no request can have'],
    ['/v1%5Csearch', 'which no request can have'],
  ])('without canonical form are rejected with the spelling to use: %s', async (path, message) => {
    const { rateLimitId } = await management.createPlan();
    const lists = listsOf(path);
    const errors = ['additionalLimits[0].match[0].path', 'costs[0].path'].map((field) => ({
      field,
      message: expect.stringContaining(message),
    }));
    for (const [method, target, body] of [
      ['post', '/rate-limit/create', { rateLimitId: 'of-parameters', ...BASE, ...lists }],
      ['put', `/rate-limit/${rateLimitId}`, { ...BASE, ...lists }],
      ['patch', `/rate-limit/${rateLimitId}`, lists],
    ] as const) {
      const response = await management.send(method, target, body).expect(400);
      expect(response.body).toMatchObject({ code: 'pattern_not_canonical', errors });
    }
    await management.send('get', '/rate-limit/of-parameters').expect(404);
    const config = { plans: [{ rateLimitId, ...BASE, ...lists }] };
    for (const target of ['/tollgate/config/diff', '/tollgate/config/apply']) {
      const { body } = await management.send('post', target, { config, owner: 'patterns' }).expect(400);
      expect(body).toMatchObject({
        code: 'pattern_not_canonical',
        errors: errors.map((error) => ({ ...error, field: `config.plans[0].${error.field}` })),
      });
    }
  });

  it('in another spelling are no change of a configuration', async () => {
    const plan = (path: string) => ({ rateLimitId: 'spelt', ...BASE, ...listsOf(path) });
    const body = (path: string) => ({ config: { plans: [plan(path)] }, owner: 'spelling' });
    await management.send('post', '/tollgate/config/apply', body('/V1/%53earch')).expect(200);
    const shown = await management.send('get', '/rate-limit/spelt').expect(200);
    expect(shown.body).toMatchObject(listsOf('/v1/search'));
    const same = await management.send('post', '/tollgate/config/diff', body('/v1/Search')).expect(200);
    expect(same.body).toMatchObject({ changes: [] });
  });

  it('of HEAD meet a limit of GET: a cost above it is rejected', async () => {
    const limit = { limitId: 'gets', limit: 5, period: 'hour', match: [{ methods: ['GET'], path: '/a' }] };
    const costs = [{ methods: ['HEAD'], path: '/A/', cost: 6 }];
    expect(await rejected({ additionalLimits: [limit], costs })).toMatchObject([{ field: 'costs[0].cost' }]);
  });
});

describe('PUT /rate-limit/{rateLimitId}', () => {
  it('makes a plan with 201, and replaces all of it with 200', async () => {
    const made = await management.send('put', '/rate-limit/put', { ...BASE, costs: COSTS }).expect(201);
    expect(made.body).toMatchObject({ rateLimitId: 'put', ...BASE, costs: COSTS });
    management.clock.advance(1000);
    const replaced = await management.send('put', '/rate-limit/put', { limit: 5, period: 'day' }).expect(200);
    expect(replaced.body).toEqual({
      rateLimitId: 'put',
      description: '',
      limit: 5,
      period: 'day',
      createdAt: made.body.createdAt,
      lastUpdated: '2026-02-03T04:05:07Z',
    });
  });

  it.each(['-x', 'a%20b', 'x'.repeat(65)])('rejects the id %s', async (id) => {
    const { body } = await management.send('put', `/rate-limit/${id}`, BASE).expect(400);
    expect(body.errors).toMatchObject([{ field: 'rateLimitId' }]);
  });

  it('rejects a rateLimitId in the body that is not the one of the path', async () => {
    const { body } = await management.send('put', '/rate-limit/a', { ...BASE, rateLimitId: 'b' }).expect(400);
    expect(body.errors).toMatchObject([{ field: 'rateLimitId' }]);
    await management.send('put', '/rate-limit/a', { ...BASE, rateLimitId: 'a' }).expect(201);
  });

  it('needs the root token', async () => {
    await management.bare('put', '/rate-limit/a').send(BASE).expect(401);
  });
});
