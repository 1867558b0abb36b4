import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ADMIN_TOKEN_PREFIX } from '../../src/admins/admin-token.ts';
import { PERIOD_RULE } from '../../src/limiter/period.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { startManagement, type TestManagement } from './start-management.ts';

const CREATE = '/rate-limit/create';
const RULES = {
  rateLimitId:
    'must be 1 to 64 letters, digits, dots, hyphens or underscores, the first a letter or a digit, and not "create", without a secret in it',
  description: 'must be a string of at most 1024 characters without NUL or unpaired surrogates',
  limit: 'must be an integer from 1 to 999999999999999',
  period: PERIOD_RULE,
};
const GOLD = { rateLimitId: 'gold', description: 'For partners', limit: 1000, period: 'hour' };

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

describe('POST /rate-limit/create', () => {
  it('echoes the four fields and adds createdAt', async () => {
    const { body } = await management.send('post', CREATE, GOLD).expect(201);
    expect(body).toEqual({ ...GOLD, createdAt: '2026-02-03T04:05:06Z' });
  });

  it.each([
    'second',
    'minute',
    'hour',
    'day',
    'week',
    'month',
    'year',
    'Hours',
    'DAY',
    '15 minutes',
    '2 weeks',
    '30s',
    '15m',
    '12H',
    '7d',
    'PT15M',
    'P1M',
    'p1y',
    'P1DT12H',
  ])('echoes the period %s as it was sent, in every response', async (period) => {
    const { rateLimitId } = await management.createPlan({ period });
    const { id } = await management.createKey();
    const shown = await management.send('get', `/rate-limit/${rateLimitId}`).expect(200);
    const bound = await management
      .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
      .expect(200);
    expect([shown.body.period, bound.body.period]).toEqual([period, period]);
  });

  it.each([
    ['an empty description', 'description', ''],
    ['an odd description', 'description', ` untrimmed\n"'; DROP TABLE plans; -- `],
    ['the longest description', 'description', '🗝'.repeat(1024)],
    ['the lowest limit', 'limit', 1],
    ['the highest limit', 'limit', 999_999_999_999_999],
    ['the shortest rateLimitId', 'rateLimitId', 'a'],
    ['the longest rateLimitId', 'rateLimitId', `9._-${'x'.repeat(60)}`],
    ['the name of a property of objects', 'rateLimitId', 'constructor'],
  ])('takes and stores %s unchanged', async (_what, field, value) => {
    const { rateLimitId } = await management.createPlan({ [field]: value });
    const { body } = await management.send('get', `/rate-limit/${rateLimitId}`).expect(200);
    expect(body[field]).toBe(value);
  });

  it.each([
    [
      'rateLimitId',
      ['', ' gold', '-a', '.a', 'a b', 'a/b', 'é', 'x'.repeat(65), 'a\n', 'create', '__proto__', 7, null],
    ],
    ['description', ['x'.repeat(1025), 'a\u0000b', '\udc00', 7, null, {}]],
    ['limit', [0, -1, 1.5, 1_000_000_000_000_000, 1e300, '1000', null, true, [1]]],
    [
      'period',
      ['', 'hourly', '0 minutes', '367 days', ' hour', 'P0D', '1.5 hours', 'x'.repeat(5000), 60, null],
    ],
  ] as const)('rejects a bad %s with its rule', async (field, values) => {
    for (const value of values) {
      const { body } = await management.send('post', CREATE, { ...GOLD, [field]: value }).expect(400);
      expect(body).toMatchObject({
        code: 'invalid_body',
        errors: [{ field, message: expect.stringContaining(RULES[field]) }],
      });
      expect(body.errors).toHaveLength(1);
    }
  });

  it.each([
    ['of a consumer', createSecret('tg', systemRandom)],
    ['of an administrator', createSecret(ADMIN_TOKEN_PREFIX, systemRandom)],
    ['within an id', `a.${createSecret('tg', systemRandom)}-b`],
  ])('rejects a secret %s as rateLimitId, and does not repeat it', async (_what, rateLimitId) => {
    const { rateLimitId: __, ...terms } = GOLD;
    const made = [
      await management.send('post', CREATE, { ...terms, rateLimitId }).expect(400),
      await management.send('put', `/rate-limit/${rateLimitId}`, terms).expect(400),
      await management.send('put', `/rate-limit/${rateLimitId}`, { ...terms, rateLimitId }).expect(400),
    ];
    for (const { body, text } of made) {
      const message = expect.stringMatching(/; this one has a secret in it, .* choose another/);
      expect(body).toMatchObject({ code: 'invalid_body', errors: [{ field: 'rateLimitId', message }] });
      expect(text).not.toContain(rateLimitId);
    }
    await management.send('get', `/rate-limit/${rateLimitId}`).expect(404);
  });

  it('takes a hash as part of a rateLimitId', async () => {
    const rateLimitId = 'acme_3f786850e387550fdab836ed7e6dc881de23001b';
    await management.send('post', CREATE, { ...GOLD, rateLimitId }).expect(201);
    await management.send('put', `/rate-limit/${rateLimitId}`, { ...GOLD, rateLimitId }).expect(200);
  });

  it('lists all four fields when none is sent, in their order', async () => {
    const { body } = await management.send('post', CREATE, {}).expect(400);
    expect(body.errors).toEqual(
      Object.entries(RULES).map(([field, rule]) => ({ field, message: `is required and ${rule}` })),
    );
  });

  it('rejects a rateLimitId that is taken, and leaves the plan as it was', async () => {
    const { rateLimitId } = await management.createPlan({ limit: 5 });
    const { body } = await management.send('post', CREATE, { ...GOLD, rateLimitId }).expect(409);
    expect(body.code).toBe('plan_exists');
    const kept = await management.send('get', `/rate-limit/${rateLimitId}`).expect(200);
    expect(kept.body.limit).toBe(5);
    await management.send('post', CREATE, { ...GOLD, rateLimitId: 'default' }).expect(409);
  });
});

describe('GET /rate-limit', () => {
  it('lists all plans by id, the default one among them', async () => {
    const { rateLimitId } = await management.createPlan();
    const { body } = await management.send('get', '/rate-limit').expect(200);
    expect(Object.keys(body)).toEqual(['rateLimits']);
    const ids = body.rateLimits.map((plan: { rateLimitId: string }) => plan.rateLimitId);
    expect(ids).toEqual(ids.toSorted());
    expect(ids).toEqual(expect.arrayContaining(['default', rateLimitId]));
  });
});

describe('a plan', () => {
  it('is shown, changed and deleted', async () => {
    const { rateLimitId } = await management.createPlan({ limit: 5, period: 'day' });
    const path = `/rate-limit/${rateLimitId}`;
    const plan = {
      rateLimitId,
      description: 'of a test',
      limit: 5,
      period: 'day',
      createdAt: '2026-02-03T04:05:06Z',
      lastUpdated: '2026-02-03T04:05:06Z',
    };
    expect((await management.send('get', path).expect(200)).body).toEqual(plan);
    management.clock.advance(1000);
    const changed = await management.send('patch', path, { limit: 6 }).expect(200);
    expect(changed.body).toEqual({ ...plan, limit: 6, lastUpdated: '2026-02-03T04:05:07Z' });
    const whole = { description: 'd', limit: 7, period: 'P1M' };
    expect((await management.send('patch', path, whole).expect(200)).body).toMatchObject(whole);
    const deleted = await management.send('delete', path).expect(200);
    expect(deleted.body).toEqual({ rateLimitId, message: 'The rate limit plan was deleted.' });
    await management.send('get', path).expect(404);
  });

  it.each([
    [{ limit: 0 }, 'limit', RULES.limit],
    [{ period: 'never' }, 'period', `${PERIOD_RULE}; its unit is not known`],
    [{ description: null }, 'description', RULES.description],
    [{}, 'body', 'must have at least one of description, limit, period, additionalLimits, costs'],
    [
      { rateLimitId: 'other' },
      'rateLimitId',
      'is not a field that is known here. Known are description, limit, period, additionalLimits, costs.',
    ],
  ])('rejects the change %j', async (changes, field, message) => {
    const { rateLimitId } = await management.createPlan();
    const { body } = await management.send('patch', `/rate-limit/${rateLimitId}`, changes).expect(400);
    expect(body).toMatchObject({ code: 'invalid_body', errors: [{ field, message }] });
  });

  it('can not be deleted while a key is bound to it, nor ever as the default plan', async () => {
    const { rateLimitId } = await management.createPlan();
    const { id } = await management.createKey();
    await management
      .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
      .expect(200);
    const rejected = await management.send('delete', `/rate-limit/${rateLimitId}`).expect(409);
    expect(rejected.body).toEqual({
      error: `1 key is bound to the rate limit plan. Bind all its keys to another one first, or let ?rebindTo=<rateLimitId> do it; GET /consumer-api-key?rateLimitId=${rateLimitId} lists them.`,
      code: 'plan_in_use',
      boundKeys: 1,
    });
    await management.send('delete', `/consumer-api-key/${id}`).expect(200);
    await management.send('delete', `/rate-limit/${rateLimitId}`).expect(200);
    const { body } = await management.send('delete', '/rate-limit/default').expect(409);
    expect(body.code).toBe('plan_is_default');
  });

  it.each(['nope', '-', '%00', 'a%20b', 'a%2Fb', '%F0%9F%94%91', 'x'.repeat(65)])(
    'that does not exist is a 404: %s',
    async (id) => {
      const path = `/rate-limit/${id}`;
      for (const request of [
        management.send('get', path),
        management.send('delete', path),
        management.send('patch', path, { limit: 1 }),
      ]) {
        const { body } = await request.expect(404);
        expect(body).toEqual({
          error: 'There is no rate limit plan with this rateLimitId.',
          code: 'plan_not_found',
        });
      }
    },
  );
});
