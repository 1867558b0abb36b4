import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin, type Managed } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { ROOT_TOKEN } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';
import { ask, original } from './support/ask.ts';

let fleet: Fleet;
let url: string;
/** The secret of a token with the preset for services. */
let verifier: string;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, { AUTHORIZE_PORT: '0', TRUSTED_PROXIES: '127.0.0.1' });
  url = fleet.replicas[0]?.authorizeUrl ?? '';
  verifier = await makeToken({ scopes: ['verifier'] });
  await fleet.admin.makePlan('ample', 1000, 'day');
});
afterAll(() => fleet?.stop());

async function makeToken(fields: object): Promise<string> {
  const { body } = await fleet.admin.call('POST', '/tollgate/admin-token/create', {
    name: 'a service',
    ...fields,
  });
  return body.secret;
}

let plans = 0;
async function keyWithLimit(limit: number): Promise<{ readonly id: string; readonly secret: string }> {
  plans += 1;
  await fleet.admin.makePlan(`limit-${plans}`, limit, 'day');
  return fleet.admin.makeKey(`key ${plans}`, `limit-${plans}`);
}

async function verify(body: object, token = verifier): Promise<Managed> {
  const response = await fetch(`${url}/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

async function usedOf(keyId: string): Promise<number> {
  return (await fleet.admin.call('GET', `/consumer-api-key/${keyId}/limits`)).body.limits[0].used;
}

describe('POST /verify', () => {
  it('counts a request that is allowed, and says all about key and limits', async () => {
    const { id, secret } = await keyWithLimit(5);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, {
      externalId: 'customer-42',
      tags: ['eu'],
      metadata: { contract: 'C-7' },
      expiresAt: '2099-01-01T00:00:00Z',
    });
    const { status, headers, body } = await verify({
      secret,
      method: 'POST',
      path: '/jobs?x=1',
      customerId: 'c1',
    });
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body).toEqual({
      ...{ allowed: true, status: 200, code: null },
      consumerApiKeyId: id,
      name: `key ${plans}`,
      externalId: 'customer-42',
      rateLimitId: `limit-${plans}`,
      tags: ['eu'],
      metadata: { contract: 'C-7' },
      expiresAt: '2099-01-01T00:00:00Z',
      customerId: 'c1',
      limits: [{ limitId: 'main', limit: 5, remaining: 4, resetTime: expect.stringMatching(/Z$/) }],
      retryAfterSeconds: null,
    });
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 1);
    const { usage } = await fleet.admin.detail(id);
    expect(usage).toMatchObject({
      successfulRequests: 1,
      endpoints: [{ endpoint: '/jobs', requests: 1, averageResponseTimeMs: 0 }],
      usageByCustomer: [{ customerId: 'c1', requests: 1 }],
    });
  });

  it('says what the proxy would have sent to a request that is rejected', async () => {
    const { id, secret } = await keyWithLimit(1);
    await verify({ secret });
    const limited = await verify({ secret });
    expect(limited.status).toBe(200);
    expect(limited.body).toMatchObject({
      ...{ allowed: false, status: 429, code: 'limited', consumerApiKeyId: id },
      limits: [{ limitId: 'main', limit: 1, remaining: 0 }],
    });
    expect(limited.body.retryAfterSeconds).toBeGreaterThan(0);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['203.0.113.7'] });
    const elsewhere = { allowed: false, status: 403, code: 'address_not_allowed', limits: [] };
    expect((await verify({ secret })).body).toMatchObject(elsewhere);
    expect((await verify({ secret, address: '203.0.113.8' })).body).toMatchObject(elsewhere);
    expect((await verify({ secret, address: '203.0.113.7' })).body).toMatchObject({ status: 429 });
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    const disabled = { allowed: false, status: 401, code: 'key_disabled', consumerApiKeyId: id, limits: [] };
    expect((await verify({ secret })).body).toMatchObject(disabled);
    await fleet.admin.deleteKey(id);
    expect((await verify({ secret })).body).toEqual({ allowed: false, status: 401, code: 'invalid_api_key' });
  });

  it('decides for the page that is named as the origin, and for a program where none is', async () => {
    const { id, secret } = await keyWithLimit(5);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, {
      allowedOrigins: ['https://app.example.com'],
    });
    const from = async (fields: object) => (await verify({ secret, ...fields })).body;
    expect(await from({ origin: 'https://app.example.com' })).toMatchObject({ allowed: true });
    const elsewhere = { allowed: false, status: 403, code: 'origin_not_allowed', consumerApiKeyId: id };
    expect(await from({ origin: 'https://evil.example.com' })).toMatchObject(elsewhere);
    expect(await from({})).toMatchObject({ allowed: true });
    expect(await usedOf(id)).toBe(2);
  });

  it('names enforced limits alone, and a time for a retry only after a limit', async () => {
    const shadow = { limitId: 'trial', limit: 1, period: 'hour', mode: 'shadow' };
    await fleet.admin.call('PUT', '/rate-limit/with-a-trial', {
      ...{ description: '', limit: 5, period: 'day', additionalLimits: [shadow] },
    });
    const { id, secret } = await fleet.admin.makeKey('with a trial', 'with-a-trial');
    for (const remaining of [4, 3])
      expect((await verify({ secret })).body).toMatchObject({
        allowed: true,
        limits: [{ limitId: 'main', remaining }],
      });
    const limited = (await verify({ secret, cost: 4 })).body;
    expect(limited).toMatchObject({ allowed: false, code: 'limited', limits: [{ limitId: 'main' }] });
    expect(limited.retryAfterSeconds).toBeGreaterThan(0);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    expect((await verify({ secret })).body).toMatchObject({ code: 'key_disabled', retryAfterSeconds: null });
  });

  it.each(['tg_wrong', 'not a token', `tg_${'x'.repeat(36)}`])(
    'says nothing but the code of %s',
    async (secret) => {
      const { status, body } = await verify({ secret, origin: 'https://app.example.com' });
      expect([status, body]).toEqual([200, { allowed: false, status: 401, code: 'invalid_api_key' }]);
    },
  );

  it('takes the cost from the request, 0 included, in place of the plan’s', async () => {
    const { id, secret } = await keyWithLimit(10);
    expect((await verify({ secret, cost: 7 })).body).toMatchObject({
      allowed: true,
      limits: [{ remaining: 3 }],
    });
    expect((await verify({ secret, cost: 4 })).body).toMatchObject({ allowed: false, status: 429 });
    expect((await verify({ secret, cost: 3 })).body).toMatchObject({
      allowed: true,
      limits: [{ remaining: 0 }],
    });
    expect((await verify({ secret, cost: 0 })).body).toMatchObject({
      allowed: true,
      limits: [{ remaining: 0 }],
    });
    expect(await usedOf(id)).toBe(10);
  });

  it('counts nothing with count: false, and decides as if it did', async () => {
    const { id, secret } = await keyWithLimit(2);
    const look = (cost: number) => verify({ secret, cost, count: false });
    expect((await look(2)).body).toMatchObject({ allowed: true, limits: [{ limit: 2, remaining: 2 }] });
    expect((await look(3)).body).toMatchObject({ allowed: false, status: 429, code: 'limited' });
    await verify({ secret, cost: 2 });
    expect((await look(1)).body).toMatchObject({ allowed: false, status: 429, limits: [{ remaining: 0 }] });
    expect((await look(0)).body).toMatchObject({ allowed: true });
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests > 0);
    expect((await fleet.admin.detail(id)).usage.totalRequests).toBe(1);
    expect(await usedOf(id)).toBe(2);
  });

  it('has keys without the tags of the token for unknown, and counts nothing for them', async () => {
    const { id, secret } = await keyWithLimit(5);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { tags: ['eu', 'paid'] });
    const eu = await makeToken({ scopes: ['keys:verify'], onlyTags: ['eu'] });
    const us = await makeToken({ scopes: ['keys:verify'], onlyTags: ['us'] });
    const unknown = { allowed: false, status: 401, code: 'invalid_api_key' };
    expect((await verify({ secret }, us)).body).toEqual(unknown);
    expect((await verify({ secret }, eu)).body).toMatchObject({ allowed: true, consumerApiKeyId: id });
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { tags: ['us'] });
    expect((await verify({ secret }, eu)).body).toEqual(unknown);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    expect((await verify({ secret }, eu)).body).toEqual(unknown);
    expect((await verify({ secret }, us)).body).toMatchObject({ code: 'key_disabled', consumerApiKeyId: id });
    expect(await usedOf(id)).toBe(1);
  });

  describe('decides about any text of the consumer as /authorize does:', () => {
    const page = 'https://app.example.com';
    const allowed = { allowed: true, status: 200, code: null };
    const elsewhere = { allowed: false, status: 403, code: 'address_not_allowed' };
    const otherPage = { allowed: false, status: 403, code: 'origin_not_allowed' };
    const unknown = { allowed: false, status: 401, code: 'invalid_api_key' };
    let restricted = '';
    beforeAll(async () => {
      const { id, secret } = await fleet.admin.makeKey('restricted', 'ample');
      const where = { allowedIps: ['203.0.113.7'], allowedOrigins: [page] };
      await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, where);
      restricted = secret;
    });

    it.each<readonly [string, Record<string, string>, object]>([
      ['the longest secret', { secret: 'x'.repeat(512) }, unknown],
      ['a longer secret', { secret: 'x'.repeat(513) }, unknown],
      ['a very long secret', { secret: 'x'.repeat(10_000) }, unknown],
      ['an empty secret', { secret: '' }, unknown],
      ['a secret that no header has', { secret: 'clé' }, unknown],
      ['the longest customer id', { customerId: 'c'.repeat(128) }, { customerId: 'c'.repeat(128) }],
      ['a longer customer id', { customerId: 'c'.repeat(129) }, { customerId: 'anonymous' }],
      ['an empty customer id', { customerId: '' }, { customerId: 'anonymous' }],
      ['a customer id that is not ASCII', { customerId: 'é' }, { customerId: 'anonymous' }],
      ['a long origin', { origin: `${page}/${'x'.repeat(600)}` }, otherPage],
      ['an origin that is none', { origin: 'a b' }, otherPage],
      ['an empty origin', { origin: '' }, otherPage],
      ['an address with a port', { address: '203.0.113.7:4711' }, allowed],
      ['an address that is none', { address: '203.0.113' }, elsewhere],
      ['a long address', { address: '203.0.113.7.'.repeat(600) }, elsewhere],
      ['an empty address', { address: '' }, elsewhere],
    ])('%s', async (_what, fields, expected) => {
      const described = { secret: restricted, customerId: 'c1', address: '203.0.113.7', origin: page };
      const { secret, customerId, address, origin } = { ...described, ...fields };
      const { status, body } = await verify({ secret, customerId, address, origin });
      expect([status, body]).toMatchObject([200, expected]);
      const asked = await ask(url, '/authorize/original', {
        headers: { ...original(secret), 'x-customer-id': customerId, 'x-forwarded-for': address, origin },
      });
      expect([asked.status, asked.body?.code]).toEqual([body.status, body.code ?? undefined]);
      if (body.allowed) expect(asked.headers['tollgate-customer-id']).toBe(body.customerId);
    });
  });

  it.each([
    [{}, 'secret'],
    [{ secret: null }, 'secret'],
    [{ secret: 7 }, 'secret'],
    [{ secret: 'x', method: 'get' }, 'method'],
    [{ secret: 'x', method: 'TRACE' }, 'method'],
    [{ secret: 'x', method: 'GTE' }, 'method'],
    [{ secret: 'x', path: 'x' }, 'path'],
    [{ secret: 'x', path: '/a/../b' }, 'path'],
    [{ secret: 'x', path: '/a%zz' }, 'path'],
    [{ secret: 'x', customerId: null }, 'customerId'],
    [{ secret: 'x', address: 7 }, 'address'],
    [{ secret: 'x', origin: ['a'] }, 'origin'],
    [{ secret: 'x', cost: -1 }, 'cost'],
    [{ secret: 'x', cost: 1.5 }, 'cost'],
    [{ secret: 'x', count: 0 }, 'count'],
    [{ secret: 'x', counts: false }, 'counts'],
  ])('rejects %j and names the field', async (body, field) => {
    const rejected = await verify(body);
    expect([rejected.status, rejected.body.code]).toEqual([400, 'invalid_body']);
    expect(rejected.body.errors).toEqual([{ field, message: expect.any(String) }]);
  });

  it('needs a token with the scope keys:verify', async () => {
    const bare = await ask(url, '/verify', { method: 'POST' });
    expect([bare.status, bare.body.code]).toEqual([401, 'missing_root_token']);
    const wrong = await verify({ secret: 'x' }, 'wrong');
    expect([wrong.status, wrong.body.code]).toEqual([401, 'invalid_root_token']);
    const reader = await verify({ secret: 'x' }, await makeToken({ scopes: ['read-only'] }));
    expect([reader.status, reader.body]).toMatchObject([403, { requiredScope: 'keys:verify' }]);
    expect((await verify({ secret: 'x' }, ROOT_TOKEN)).status).toBe(200);
    expect((await ask(url, '/verify', { headers: { authorization: `Bearer ${verifier}` } })).status).toBe(
      405,
    );
  });

  it('is served to the console at the management interface as well, and nowhere without its port', async () => {
    const { secret } = await keyWithLimit(3);
    const tried = await fleet.admin.call('POST', '/api-keys/verify', { secret, count: false });
    expect([tried.status, tried.body.allowed]).toEqual([200, true]);
    const without = await startInProcess({ ...fleet.environment, AUTHORIZE_PORT: '' });
    try {
      const { status, body } = await new Admin(without.url).call('POST', '/api-keys/verify', { secret });
      expect([status, body.code]).toEqual([404, 'not_found']);
    } finally {
      await without.stop();
    }
  });
});
