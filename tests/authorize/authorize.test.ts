import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';
import { ask, original } from './support/ask.ts';

const TOKEN = 'token-of-the-gateway-in-front';

let fleet: Fleet;
let url: string;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, {
    AUTHORIZE_PORT: '0',
    CORS_ALLOWED_ORIGINS: 'https://app.example.com',
    TRUSTED_PROXIES: '127.0.0.1',
  });
  url = fleet.replicas[0]?.authorizeUrl ?? '';
  await fleet.admin.makePlan('ample', 1000, 'day');
});
afterAll(() => fleet?.stop());

let plans = 0;
async function keyWithLimit(limit: number): Promise<{ readonly id: string; readonly secret: string }> {
  plans += 1;
  await fleet.admin.makePlan(`limit-${plans}`, limit, 'day');
  return fleet.admin.makeKey(`key ${plans}`, `limit-${plans}`);
}

/** The totals of a key, once they have this sum. */
async function usageOf(keyId: string, total: number) {
  await until(async () => (await fleet.admin.detail(keyId)).usage.totalRequests >= total);
  return (await fleet.admin.detail(keyId)).usage;
}

const ORIGINAL = '/authorize/original';

describe('an allowed request', () => {
  it('is a 200 without a body, with the fields for the backend', async () => {
    const { id, secret } = await fleet.admin.makeKey('Ada', 'ample');
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { externalId: 'Ärzte\r\n100 %' });
    const { status, text, headers } = await ask(url, ORIGINAL, {
      headers: { ...original(secret), 'x-customer-id': 'c 1', 'x-request-id': 'r1' },
    });
    expect([status, text]).toEqual([200, '']);
    expect(headers).toMatchObject({
      'x-api-key': secret,
      'tollgate-key-id': id,
      'tollgate-plan': 'ample',
      'tollgate-external-id': '%C3%84rzte%0D%0A100%20%25',
      'tollgate-customer-id': 'c 1',
      'x-request-id': 'r1',
      'x-ratelimit-limit': '1000',
      'x-ratelimit-remaining': '999',
      'cache-control': 'no-store',
      'content-length': '0',
    });
    expect(headers.ratelimit).toMatch(/^"ample";r=999;t=\d+$/);
    expect(headers['tollgate-key-expires']).toBeUndefined();
  });

  it('counts as successful, without a response time, status class or bytes', async () => {
    const { id, secret } = await fleet.admin.makeKey('counted', 'ample');
    await ask(url, ORIGINAL, { headers: original(secret) });
    const usage = await usageOf(id, 1);
    expect(usage).toMatchObject({ totalRequests: 1, successfulRequests: 1, failedRequests: 0 });
    expect(usage.endpoints).toEqual([
      { endpoint: '/v1/orders', requests: 1, successful: 1, failed: 0, averageResponseTimeMs: 0 },
    ]);
  });

  it.each([
    ['original', { 'x-original-method': 'POST', 'x-original-uri': '/a/b?c' }],
    ['original-url', { 'x-original-method': 'POST', 'x-original-url': 'https://api.example.com:8443/a/b?c' }],
    ['forwarded', { 'x-forwarded-method': 'POST', 'x-forwarded-uri': '/a/b?c' }],
    ['envoy/a/b?c', {}],
  ])('is read in the dialect %s, and fields of the others are ignored', async (dialect, fields) => {
    const { id, secret } = await fleet.admin.makeKey(dialect, 'ample');
    await fleet.admin.call('PATCH', `/rate-limit/ample`, {
      costs: [{ methods: ['POST'], path: '/a/b', cost: 7 }],
    });
    const others = {
      'x-original-uri': '/other',
      'x-original-url': 'http://other/other',
      'x-original-method': 'GET',
      'x-forwarded-uri': '/other',
      'x-forwarded-method': 'GET',
    };
    const { status, headers } = await ask(url, `/authorize/${dialect}`, {
      method: 'POST',
      headers: { ...others, ...fields, authorization: `Bearer ${secret}` },
    });
    expect([status, headers['x-ratelimit-remaining']]).toEqual([200, '993']);
    expect((await usageOf(id, 1)).endpoints[0].endpoint).toBe('/a/b');
  });

  it('says until when the previous secret of its key is valid', async () => {
    const { id, secret } = await fleet.admin.makeKey('rotated', 'ample');
    const { body } = await fleet.admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds: 600 });
    const expiryWith = async (presented: string) =>
      (await ask(url, ORIGINAL, { headers: original(presented) })).headers['tollgate-key-expires'];
    expect(await expiryWith(secret)).toBe(body.previousValidUntil);
    expect(await expiryWith(body.secret)).toBeUndefined();
  });

  it('costs its reserve where only the backend knows the cost', async () => {
    const costs = [{ path: '/**', cost: 'response', reserve: 5 }];
    await fleet.admin.call('PUT', '/rate-limit/reserving', {
      ...{ description: '', limit: 20, period: 'day', costs },
    });
    const { id, secret } = await fleet.admin.makeKey('reserving', 'reserving');
    for (const remaining of ['15', '10']) {
      const { headers } = await ask(url, ORIGINAL, { headers: original(secret) });
      expect(headers['x-ratelimit-remaining']).toBe(remaining);
    }
    await usageOf(id, 2);
    const { body } = await fleet.admin.call('GET', `/consumer-api-key/${id}/limits`);
    expect(body.limits[0].used).toBe(10);
  });

  it('shares its windows with proxied requests', async () => {
    const { secret } = await keyWithLimit(2);
    const proxied = () =>
      fetch(`${fleet.replicas[0]?.url}/v1/orders`, { headers: { authorization: `Bearer ${secret}` } });
    expect((await ask(url, ORIGINAL, { headers: original(secret) })).status).toBe(200);
    expect((await proxied()).status).toBe(200);
    expect((await ask(url, ORIGINAL, { headers: original(secret) })).status).toBe(429);
    expect((await proxied()).status).toBe(429);
  });
});

describe('a rejected request', () => {
  it('has status, body and fields of the proxy', async () => {
    const { id, secret } = await keyWithLimit(1);
    await ask(url, ORIGINAL, { headers: original(secret) });
    const rejected = await ask(url, ORIGINAL, { headers: original(secret) });
    const proxied = await ask(fleet.replicas[0]?.url ?? '', '/v1/orders', {
      headers: { authorization: `Bearer ${secret}` },
    });
    const { 'x-request-id': _id, date: _date, 'cache-control': noStore, ...fields } = rejected.headers;
    const { 'x-request-id': _ours, date: _when, ...expected } = proxied.headers;
    expect([rejected.status, noStore]).toEqual([429, 'no-store']);
    expect(rejected.body).toEqual(proxied.body);
    expect(Object.keys(fields).toSorted()).toEqual(Object.keys(expected).toSorted());
    expect(await usageOf(id, 3)).toMatchObject({ successfulRequests: 1, failedRequests: 2 });
  });

  it.each([
    ['without a key', {}, 401, 'missing_api_key'],
    ['with a wrong key', { authorization: 'Bearer wrong' }, 401, 'invalid_api_key'],
  ])('%s is a 401 with the challenge', async (_name, headers, status, code) => {
    const rejected = await ask(url, ORIGINAL, { headers: { ...original(undefined), ...headers } });
    expect([rejected.status, rejected.body.code]).toEqual([status, code]);
    expect(rejected.headers['www-authenticate']).toMatch(/^Bearer realm="tollgate"/);
  });

  it('is a 403 with status and body in fields where the gateway asks for that', async () => {
    const { id, secret } = await keyWithLimit(1);
    const headers = original(secret);
    await ask(url, `${ORIGINAL}?rejected=403`, { headers });
    const limited = await ask(url, `${ORIGINAL}?rejected=403`, { headers });
    expect([limited.status, limited.headers['tollgate-status']]).toEqual([403, '429']);
    expect(limited.headers['tollgate-body']).toBe(limited.text);
    expect(limited.headers['retry-after']).toMatch(/^\d+$/);
    const unknown = await ask(url, `${ORIGINAL}?rejected=403`, { headers: original('wrong') });
    expect([unknown.status, unknown.headers['tollgate-status']]).toEqual([401, '401']);
    expect(JSON.parse(String(unknown.headers['tollgate-body'])).code).toBe('invalid_api_key');
    const malformed = await ask(url, `${ORIGINAL}?rejected=403`, { headers: original(secret, 'x') });
    expect([malformed.status, malformed.headers['tollgate-status']]).toEqual([403, '400']);
    // Usage and log have the true status.
    expect(await usageOf(id, 2)).toMatchObject({ successfulRequests: 1, failedRequests: 1 });
    const series = await fleet.admin.call('GET', `/consumer-api-key/${id}/usage?interval=total`);
    expect(series.body.rows[0]).toMatchObject({ rateLimited: 1, requests: 2 });
  });

  it('is a 403 also where what the consumer sent makes the head of the call invalid', async () => {
    const repeated = ['x-api-key', 'a', 'x-api-key', 'b', 'x-original-method', 'GET', 'x-original-uri', '/'];
    const twice = await ask(url, `${ORIGINAL}?rejected=403`, { headers: repeated });
    expect([twice.status, twice.headers['tollgate-status'], twice.headers['cache-control']]).toEqual([
      403,
      '400',
      'no-store',
    ]);
    const loop = await ask(url, '/authorize/envoy/', { headers: { via: '1.1 tollgate' } });
    expect([loop.status, loop.body.code]).toEqual([400, 'original_request_invalid']);
    const large = await ask(url, `${ORIGINAL}?rejected=403`, {
      headers: { ...original('x'), 'x-filler': 'x'.repeat(20_000) },
    });
    expect([large.status, large.headers['tollgate-status']]).toEqual([403, '431']);
  });
});

describe('the original request', () => {
  it.each([
    ['original', 'X-Original-Method', { 'x-original-uri': '/' }],
    ['original', 'X-Original-URI', { 'x-original-method': 'GET' }],
    ['original-url', 'X-Original-URL', { 'x-original-method': 'GET', 'x-original-uri': '/' }],
    ['forwarded', 'X-Forwarded-Method', { 'x-forwarded-uri': '/' }],
    ['forwarded', 'X-Forwarded-Uri', { 'x-forwarded-method': 'GET' }],
  ])('is rejected in the dialect %s without %s', async (dialect, field, headers) => {
    const { status, body } = await ask(url, `/authorize/${dialect}`, { headers });
    expect([status, body.code, body.error]).toEqual([
      400,
      'original_request_invalid',
      expect.stringContaining(field),
    ]);
  });

  it.each([
    ['X-Original-Method', ['X-Original-Method', 'GET', 'x-original-method', 'GET', 'X-Original-URI', '/']],
    ['X-Original-URI', ['X-Original-Method', 'GET', 'X-Original-URI', '/', 'X-ORIGINAL-URI', '/']],
  ])('is rejected with %s twice', async (field, headers) => {
    const { status, body } = await ask(url, ORIGINAL, { headers });
    expect([status, body.code, body.error]).toEqual([
      400,
      'original_request_invalid',
      expect.stringContaining(field),
    ]);
  });

  it.each([
    ['GET', 'v1/orders'],
    ['GET', ''],
    ['GET', '*'],
    ['GET', 'http://host/path'],
    ['GET', '/a b'],
    ['GET', '/caf\xe9'],
    ['GET', '/a#b'],
    ['GET', '/a/../b'],
    ['GET', '/a/%2e%2e/b'],
    ['GET', '/a/..;x/b'],
    ['GET', '/a\\b'],
    ['GET', '/a%zz'],
    ['GET', '/%00'],
    ['GET', `/${'x'.repeat(8192)}`],
    ['get', '/'],
    ['G ET', '/'],
    ['NONSENSE', '/'],
  ])('%s %s is rejected and counted nowhere', async (method, uri) => {
    const { id, secret } = await fleet.admin.makeKey('uncounted', 'ample');
    const { status, body } = await ask(url, ORIGINAL, { headers: original(secret, uri, method) });
    expect([status, body.code]).toEqual([400, 'original_request_invalid']);
    const { body: limits } = await fleet.admin.call('GET', `/consumer-api-key/${id}/limits`);
    expect(limits.limits[0].used).toBe(0);
  });

  it.each(['http://a?/v1/orders', 'http://a#/v1/orders', 'http:///v1', 'ftp://a/v1', '/v1', 'http://a@b/v1'])(
    'is rejected with the absolute URL %s, whose path a consumer could hide by the Host',
    async (uri) => {
      const headers = { 'x-original-method': 'GET', 'x-original-url': uri };
      const { status, body } = await ask(url, '/authorize/original-url', { headers });
      expect([status, body.code]).toEqual([400, 'original_request_invalid']);
    },
  );

  it.each([
    '/authorize/envoy',
    '/authorize/envoy?x=1',
    '/authorize/envoy/a/../original',
    '/authorize/envoy/%2e%2e/x',
  ])('is rejected in Envoy’s dialect at %s', async (path) => {
    const { status, body } = await ask(url, path);
    expect([status, body.code]).toEqual([400, 'original_request_invalid']);
  });

  it.each(['/authorize', '/authorize/', '/authorize/nginx', '/authorize/envoy2/x', '/authorize/original/x'])(
    'has no dialect %s: 404 with the list',
    async (path) => {
      const { status, body } = await ask(url, path, { headers: original('x') });
      expect([status, body.code]).toEqual([404, 'not_found']);
      expect(body.dialects).toEqual([
        '/authorize/original',
        '/authorize/original-url',
        '/authorize/forwarded',
        '/authorize/envoy',
      ]);
    },
  );

  it('is read whatever query a gateway leaves in that is not ours', async () => {
    const { secret } = await fleet.admin.makeKey('query', 'ample');
    const { status } = await ask(url, `${ORIGINAL}?rejected=403&x=1`, { headers: original(secret) });
    expect(status).toBe(200);
    const { headers } = await ask(url, `${ORIGINAL}?rejected=403&x=1`, { headers: original('wrong') });
    expect(headers['tollgate-status']).toBeUndefined();
  });

  it.each(['TRACE', 'CONNECT'])('is a 405 with %s, as in the proxy', async (method) => {
    const { status, body } = await ask(url, ORIGINAL, { headers: original('x', '/', method) });
    expect([status, body.code]).toEqual([405, 'method_not_allowed']);
  });

  it('does not choose how it is rejected: a query behind Envoy’s prefix is the consumer’s', async () => {
    expect((await ask(url, '/authorize/envoy/x?rejected=403')).headers['tollgate-status']).toBeUndefined();
  });
});

describe('the connection of a gateway', () => {
  it('is kept for the next call', async () => {
    const { secret } = await fleet.admin.makeKey('kept', 'ample');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let connections = 0;
    agent.on('free', () => {
      connections = Math.max(connections, Object.values(agent.freeSockets).flat().length);
    });
    for (let i = 0; i < 3; i += 1) await ask(url, ORIGINAL, { headers: original(secret), agent });
    const { headers } = await ask(url, ORIGINAL, { headers: original('wrong'), agent });
    expect([connections, headers.connection]).toEqual([1, 'keep-alive']);
    agent.destroy();
  });

  it.each(['Content-Length: 5', 'Content-Length: 104857600', 'Transfer-Encoding: chunked'])(
    'is closed after the response to a call with "%s" and no body, which is not waited for',
    async (framing) => {
      const { secret } = await fleet.admin.makeKey('without body', 'ample');
      const peer = await RawPeer.connect(Number(new URL(url).port));
      const fields = original(secret, '/upload', 'POST');
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
      peer.send(`POST ${ORIGINAL} HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\n${framing}\r\n\r\n`);
      const text = await peer.ended();
      expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(text).toContain('\r\nConnection: close\r\n');
      peer.destroy();
    },
  );

  it('is not upgraded, whatever the original request asks for', async () => {
    const { secret } = await fleet.admin.makeKey('socket', 'ample');
    const { status, headers } = await ask(url, ORIGINAL, {
      headers: { ...original(secret), connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'x' },
    });
    expect([status, headers['tollgate-plan']]).toEqual([200, 'ample']);
  });
});

describe('a preflight', () => {
  const preflight = (origin: string, path = ORIGINAL) =>
    ask(url, path, {
      headers: {
        ...original(undefined, '/v1/orders', 'OPTIONS'),
        origin,
        'access-control-request-method': 'POST',
      },
    });

  it('is a 200 for the pages that the proxy lets through', async () => {
    const { status, text, headers } = await preflight('https://app.example.com');
    expect([status, text, headers['access-control-allow-methods']]).toEqual([200, '', 'POST']);
  });

  it('is a 403 for other pages', async () => {
    const { status, body } = await preflight('https://evil.example.com');
    expect([status, body.code]).toEqual([403, 'origin_not_allowed']);
    const as403 = await preflight('https://evil.example.com', `${ORIGINAL}?rejected=403`);
    expect([as403.status, as403.headers['tollgate-status']]).toEqual([403, '403']);
  });
});

describe('the address of the consumer', () => {
  it('is that of X-Forwarded-For from a trusted proxy', async () => {
    const { id, secret } = await fleet.admin.makeKey('restricted', 'ample');
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['203.0.113.7'] });
    const from = (address: string) =>
      ask(url, ORIGINAL, { headers: { ...original(secret), 'x-forwarded-for': address } });
    expect((await from('203.0.113.7')).status).toBe(200);
    const rejected = await from('203.0.113.8');
    expect([rejected.status, rejected.body.code]).toEqual([403, 'address_not_allowed']);
  });
});

describe('the port for other gateways', () => {
  it('serves nothing else, and the public port does not serve it', async () => {
    for (const path of ['/', '/orders', '/consumer-api-key', '/api-keys/usage', '/verify/x']) {
      expect([path, (await ask(url, path)).status]).toEqual([path, 404]);
    }
    const before = fleet.backendRequests();
    const { secret } = await fleet.admin.makeKey('curious', 'ample');
    const proxied = await ask(fleet.replicas[0]?.url ?? '', ORIGINAL, { headers: original(secret) });
    expect([proxied.text, fleet.backendRequests()]).toEqual(['ok', before + 1]);
  });

  it('is on AUTHORIZE_HOST alone where that is another address than HOST', async () => {
    // Servers of other tests may have the same port at 127.0.0.1.
    const elsewhere = { HOST: '127.0.0.3', OPS_HOST: '127.0.0.1', AUTHORIZE_HOST: '127.0.0.2' };
    const replica = await startInProcess({ ...fleet.environment, ...elsewhere });
    try {
      const { secret } = await fleet.admin.makeKey('elsewhere', 'ample');
      const at = (host: string) =>
        ask(replica.authorizeUrl.replace('127.0.0.1', host), ORIGINAL, { headers: original(secret) });
      expect((await at('127.0.0.2')).status).toBe(200);
      await expect(at('127.0.0.3')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    } finally {
      await replica.stop();
    }
  });

  it('counts no health check', async () => {
    const rejected = async (): Promise<string[]> => {
      const metrics = await (await fetch(`${fleet.replicas[0]?.opsUrl}/metrics`)).text();
      return metrics
        .split('\n')
        .filter((line) => /^tollgate_requests_total.*"invalid_request",route="authorize"/.test(line));
    };
    await ask(url, '/orders');
    const before = await rejected();
    expect(before.length).toBeGreaterThan(0);
    expect((await ask(url, '/')).status).toBe(404);
    expect(await rejected()).toEqual(before);
    // The call of a gateway that is set up wrongly is none.
    await ask(url, '/', { headers: { 'x-original-method': 'GET' } });
    expect(await rejected()).not.toEqual(before);
  });

  it('is in metrics and log as route "authorize"', async () => {
    const metrics = await (await fetch(`${fleet.replicas[0]?.opsUrl}/metrics`)).text();
    const samples = metrics.split('\n').filter((line) => line.includes('outcome="allowed"'));
    const counted = samples.filter((line) => line.startsWith('tollgate_requests_total{'));
    expect(counted.length).toBeGreaterThan(0);
    for (const line of counted) expect(line).toContain('route="authorize"');
    expect(samples.some((line) => line.startsWith('tollgate_authorize_duration_seconds_count{'))).toBe(true);
  });
});

describe('a gateway that only decides', () => {
  let alone: Fleet;
  beforeAll(async () => {
    alone = await startInProcessFleet(1, { AUTHORIZE_PORT: '0', AUTHORIZE_TOKEN: TOKEN, BACKEND_URL: '' });
  });
  afterAll(() => alone?.stop());

  it('serves management on its port, and 404 for all else', async () => {
    const { secret } = await alone.admin.makeKey('decided');
    const publicUrl = alone.replicas[0]?.url ?? '';
    const nothing = await ask(publicUrl, '/orders', { headers: { authorization: `Bearer ${secret}` } });
    expect([nothing.status, nothing.body.code]).toEqual([404, 'not_found']);
    const self = await ask(publicUrl, '/tollgate/self', { headers: { authorization: `Bearer ${secret}` } });
    expect(self.status).toBe(200);
    const upgrade = await ask(publicUrl, '/chat', {
      headers: { connection: 'upgrade', upgrade: 'websocket' },
    });
    expect(upgrade.status).toBe(404);
    expect((await alone.admin.call('GET', '/tollgate/system')).body).toMatchObject({
      backend: null,
      degraded: [],
    });
  });

  it('decides only for gateways that send a token', async () => {
    const { secret } = await alone.admin.makeKey('decided');
    const with_ = async (token: Record<string, string> | readonly string[]) => {
      const fields = Array.isArray(token) ? token : Object.entries(token).flat();
      const headers = [...Object.entries(original(secret)).flat(), ...fields];
      const { status, body } = await ask(alone.replicas[0]?.authorizeUrl ?? '', ORIGINAL, { headers });
      return [status, body?.code];
    };
    expect(await with_({ 'Tollgate-Authorize-Token': TOKEN })).toEqual([200, undefined]);
    const rejected = [401, 'invalid_authorize_token'];
    expect(await with_({})).toEqual(rejected);
    expect(await with_({ 'Tollgate-Authorize-Token': `${TOKEN}x` })).toEqual(rejected);
    expect(await with_(['Tollgate-Authorize-Token', 'x', 'Tollgate-Authorize-Token', TOKEN])).toEqual(
      rejected,
    );
    const metrics = await (await fetch(`${alone.replicas[0]?.opsUrl}/metrics`)).text();
    const labels = 'status_class="4xx",method="other",outcome="unauthenticated",route="authorize"';
    expect(metrics).toContain(`\ntollgate_requests_total{${labels}} 3\n`);
    expect(metrics).not.toContain('outcome="invalid_request",route="authorize"');
  });

  it('says that an original path is invalid only to gateways that send a token', async () => {
    const with_ = async (headers: Record<string, string>) => {
      const { status, body } = await ask(alone.replicas[0]?.authorizeUrl ?? '', '/authorize/envoy/..', {
        headers,
      });
      return [status, body.code];
    };
    expect(await with_({})).toEqual([401, 'invalid_authorize_token']);
    expect(await with_({ 'Tollgate-Authorize-Token': 'x' })).toEqual([401, 'invalid_authorize_token']);
    expect(await with_({ 'Tollgate-Authorize-Token': TOKEN })).toEqual([400, 'original_request_invalid']);
  });
});
