import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { decide, subject } from '../support/limiter-stores.ts';
import { startManagement, type TestManagement, unavailableCounters } from './start-management.ts';

const LIMITS = [
  { limitId: 'burst', limit: 10, period: 'second' },
  { limitId: 'tenant', limit: 4, period: 'day', per: 'customer' },
];

let management: TestManagement;
beforeAll(async () => {
  management = await startManagement();
});
afterAll(() => management.stop());

/** A key under a plan of three limits. */
async function limitedKey(): Promise<{ readonly id: string; readonly path: string }> {
  const { rateLimitId } = await management.createPlan({ limit: 5, period: 'hour', additionalLimits: LIMITS });
  const { id } = await management.createKey();
  await management
    .send('post', '/api-keys/apply-rate-limit', { consumerApiKeyId: id, rateLimitId })
    .expect(200);
  return { id, path: `/consumer-api-key/${id}/limits` };
}

async function use(id: string, customerId = 'anonymous'): Promise<string> {
  const snapshot = (await management.records.keys.find(id))?.snapshot;
  const limits = snapshot?.plan?.limits.all ?? [];
  const version = snapshot?.version ?? '';
  return (await decide(management.limiter, subject(id, { version, limits, customerId }))).kind;
}

describe('the live counters of a key', () => {
  it('show every limit of its plan, used or not', async () => {
    const { id, path } = await limitedKey();
    await use(id);
    await use(id, 'acme');
    const { body } = await management.send('get', path).expect(200);
    expect(body).toEqual({
      consumerApiKeyId: id,
      rateLimitId: expect.any(String),
      now: '2026-02-03T04:05:06Z',
      degraded: false,
      limits: [
        {
          limitId: 'main',
          limit: 5,
          baseLimit: 5,
          period: 'hour',
          per: 'key',
          mode: 'enforce',
          used: 2,
          granted: 0,
          remaining: 3,
          resetTime: '2026-02-03T05:05:07Z',
          open: true,
        },
        expect.objectContaining({ limitId: 'burst', used: 2, remaining: 8, open: true }),
        expect.objectContaining({ limitId: 'tenant', per: 'customer', used: 1, remaining: 3, open: true }),
      ],
    });
    const acme = await management.send('get', `${path}?customerId=nobody`).expect(200);
    expect(acme.body.limits[2]).toMatchObject({ limitId: 'tenant', used: 0, remaining: 4, open: false });
  });

  it('are those of no limit for a key without a plan', async () => {
    const other = await startManagement({ defaultPlanId: null });
    const { id } = await other.createKey();
    const { body } = await other.send('get', `/consumer-api-key/${id}/limits`).expect(200);
    expect(body).toMatchObject({ rateLimitId: null, degraded: false, limits: [] });
    await other.send('post', `/consumer-api-key/${id}/limits/reset`, {}).expect(404);
    await other.stop();
  });

  it('can be reset: all, one limit, or one customer', async () => {
    const { id, path } = await limitedKey();
    for (const customer of ['acme', 'acme', 'other']) await use(id, customer);
    const one = await management.send('post', `${path}/reset`, { customerId: 'acme' }).expect(200);
    expect(one.body.limits).toMatchObject([{ used: 3 }, { used: 3 }, { used: 0, open: false }]);
    const other = await management.send('get', `${path}?customerId=other`).expect(200);
    expect(other.body.limits[2]).toMatchObject({ used: 1 });
    const main = await management
      .send('post', `${path}/reset`, { limitId: 'main', reason: 'asked for' })
      .expect(200);
    expect(main.body.limits).toMatchObject([{ used: 0, open: false }, { used: 3 }, {}]);
    await management.send('post', `${path}/reset`, {}).expect(200);
    const all = await management.send('get', `${path}?customerId=other`).expect(200);
    expect(all.body.limits).toMatchObject([{ used: 0 }, { used: 0 }, { used: 0 }]);
  });

  it('can be given more room, which ends with the window', async () => {
    const { id, path } = await limitedKey();
    for (let i = 0; i < 5; i += 1) expect(await use(id, `customer ${i}`)).toBe('allowed');
    expect(await use(id, 'x')).toBe('limited');
    const granted = await management
      .send('post', `${path}/grant`, { limitId: 'main', requests: 2 })
      .expect(200);
    expect(granted.body.limits[0]).toMatchObject({ limit: 5, used: 5, granted: 2, remaining: 2 });
    expect([await use(id, 'x'), await use(id, 'x'), await use(id, 'x')]).toEqual([
      'allowed',
      'allowed',
      'limited',
    ]);
    const detail = await management.send('get', `/consumer-api-key/${id}`).expect(200);
    expect(detail.body.usage.rateLimits).toMatchObject({ limit: 5, remaining: 0 });
  });

  it('open a window where room is given before the first request', async () => {
    const { path } = await limitedKey();
    const { body } = await management
      .send('post', `${path}/grant`, { limitId: 'tenant', customerId: 'acme', requests: 3 })
      .expect(200);
    expect(body.limits[2]).toMatchObject({ used: 0, granted: 3, remaining: 7, open: true });
  });

  it('follow an override, and its end', async () => {
    const { id, path } = await limitedKey();
    const overrides = { main: { limit: 50, until: '2026-02-03T04:06:00Z' }, burst: { limit: 20 } };
    const changed = await management.send('patch', `/consumer-api-key/${id}`, { overrides }).expect(200);
    expect(changed.body.overrides).toEqual(overrides);
    expect((await management.send('get', `/consumer-api-key/${id}`)).body.overrides).toEqual(overrides);
    const now = await management.send('get', path).expect(200);
    expect(now.body.limits).toMatchObject([
      { limit: 50, baseLimit: 5, remaining: 50 },
      { limit: 20, baseLimit: 10 },
      {},
    ]);
    management.clock.advance(54_000);
    const later = await management.send('get', path).expect(200);
    expect(later.body.limits).toMatchObject([{ limit: 5, baseLimit: 5 }, { limit: 20 }, {}]);
    await management.send('patch', `/consumer-api-key/${id}`, { overrides: null }).expect(200);
    const none = await management.send('get', path).expect(200);
    expect(none.body.limits).toMatchObject([{ limit: 5 }, { limit: 10 }, {}]);
  });

  it.each([
    [{ main: { limit: 0 } }, 'overrides.main.limit'],
    [{ main: {} }, 'overrides.main.limit'],
    [{ main: { limit: 5, until: 'tomorrow' } }, 'overrides.main.until'],
    [{ main: { limit: 5, period: 'day' } }, 'overrides.main.period'],
    [{ 'a b': { limit: 5 } }, 'overrides'],
    [[], 'overrides'],
  ])('reject the overrides %j', async (overrides, field) => {
    const created = await management
      .send('post', '/consumer-api-key/create', { name: 'n', overrides })
      .expect(400);
    expect(created.body.errors.map((fault: { field: string }) => fault.field)).toContain(field);
  });

  it('are not known of another key or limit, or for an invalid customer', async () => {
    const { path } = await limitedKey();
    const unknown = '/consumer-api-key/key_01KGH3V6ZQ5T8M2N4P6R8S0T2V/limits';
    expect((await management.send('get', unknown).expect(404)).body.code).toBe('key_not_found');
    expect((await management.send('post', `${unknown}/reset`, {}).expect(404)).body.code).toBe(
      'key_not_found',
    );
    const limitId = 'nope';
    expect(
      (await management.send('post', `${path}/grant`, { limitId, requests: 1 }).expect(404)).body.code,
    ).toBe('limit_not_found');
    expect((await management.send('post', `${path}/reset`, { limitId }).expect(404)).body).toEqual({
      error: 'The plan of this key has no limit with this limitId. It has main, burst, tenant.',
      code: 'limit_not_found',
    });
    const { id } = await management.createKey();
    const plain = `/consumer-api-key/${id}/limits/reset`;
    expect((await management.send('post', plain, { customerId: 'acme' }).expect(404)).body.error).toBe(
      'The plan of this key has no limit for each customer, which customerId is for. It has main.',
    );
    const ofAll = { limitId: 'main', customerId: 'acme' };
    for (const [action, body] of [
      ['reset', ofAll],
      ['grant', { ...ofAll, requests: 1 }],
    ] as const) {
      expect((await management.send('post', `${path}/${action}`, body).expect(404)).body).toEqual({
        error: 'The limit main is not for each customer: leave customerId out.',
        code: 'limit_not_found',
      });
    }
    const customer = await management.send('get', `${path}?customerId=%C3%A9`).expect(400);
    expect(customer.body.code).toBe('invalid_parameter');
    await management.send('post', `${path}/reset`, { customerId: '\u00e9' }).expect(400);
    for (const requests of [0, -1, 1.5, '1', undefined]) {
      await management.send('post', `${path}/grant`, { requests }).expect(400);
    }
    for (const each of [path, `${path}/reset`, `${path}/grant`]) {
      await management.bare(each === path ? 'get' : 'post', each).expect(401);
    }
  });

  it('are null while their store is down, and can not be changed', async () => {
    const other = await startManagement({ counters: unavailableCounters() });
    const { id } = await other.createKey();
    const path = `/consumer-api-key/${id}/limits`;
    const { body } = await other.send('get', path).expect(200);
    const unknown = { used: null, granted: null, remaining: null, resetTime: null, open: null };
    expect(body).toMatchObject({ degraded: true, limits: [{ limitId: 'main', limit: 1000, ...unknown }] });
    await other.send('post', `${path}/reset`, {}).expect(503);
    await other.send('post', `${path}/grant`, { requests: 1 }).expect(503);
    await other.stop();
  });
});
