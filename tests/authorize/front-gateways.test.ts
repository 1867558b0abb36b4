import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import type { RunningProgram } from '../support/running-program.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { type Asked, ask } from './support/ask.ts';
import { GATEWAY_KINDS, startFrontGateway } from './support/documented-gateways.ts';
import { SwitchingBackend } from './support/switching-backend.ts';

const ORIGIN = 'https://app.example.com';
const BALANCER = '127.0.0.3';
const UPLOAD_BYTES = 100 * 1024 * 1024;
const CHUNK = Buffer.alloc(1024 * 1024);

let fleet: Fleet;
let backend: SwitchingBackend;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, {
    ...{
      AUTHORIZE_PORT: '0',
      BACKEND_URL: '',
      TRUSTED_PROXIES: `127.0.0.1,${BALANCER}`,
      CORS_ALLOWED_ORIGINS: ORIGIN,
    },
  });
  backend = await SwitchingBackend.start();
  await fleet.admin.makePlan('ample', 1000, 'day');
});
afterAll(async () => {
  backend?.stop();
  await fleet?.stop();
});

const authorizePort = (): number => Number(new URL(fleet.replicas[0]?.authorizeUrl ?? '').port);
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

let plans = 0;
async function keyWithLimit(limit: number): Promise<{ readonly id: string; readonly secret: string }> {
  plans += 1;
  await fleet.admin.makePlan(`front-${plans}`, limit, 'day');
  return fleet.admin.makeKey(`key ${plans}`, `front-${plans}`);
}

describe.each(GATEWAY_KINDS)('behind %s, configured as documented,', (kind) => {
  let relay: TcpRelay;
  let front: RunningProgram;
  let url: string;
  /** Bytes that the gateway sent to Tollgate. */
  let sent = 0;
  beforeAll(async () => {
    relay = await TcpRelay.start(authorizePort(), {
      onSent: (bytes) => {
        sent += bytes.length;
      },
    });
    front = await startFrontGateway(kind, { tollgatePort: relay.port, backendPort: backend.port });
    url = `http://127.0.0.1:${front.port}`;
  });
  afterAll(async () => {
    await front?.stop();
    await relay?.stop();
  });
  // HAProxy takes Tollgate for away while this process stands still for seconds.
  beforeEach(() => until(async () => (await ask(url, '/')).status === 401));

  it('an allowed request reaches the backend with the fields of its key', async () => {
    const { id, secret } = await fleet.admin.makeKey('allowed', 'ample');
    backend.received.length = 0;
    const response = await ask(url, '/v1/orders?x=%2F', {
      headers: { ...bearer(secret), 'x-customer-id': 'c1' },
    });
    expect([response.status, response.text]).toEqual([200, 'from the backend']);
    expect(response.headers).toMatchObject({ 'x-ratelimit-limit': '1000', 'x-ratelimit-remaining': '999' });
    expect(response.headers['x-api-key']).toBeUndefined();
    expect(response.headers['tollgate-cost']).toBeUndefined();
    expect(backend.received).toEqual([
      {
        method: 'GET',
        url: '/v1/orders?x=%2F',
        headers: expect.objectContaining({
          'x-api-key': secret,
          'tollgate-key-id': id,
          'tollgate-plan': 'ample',
          'tollgate-customer-id': 'c1',
        }),
      },
    ]);
  });

  it('a rejected request gets status, body and fields of the proxy', async () => {
    const missing = await ask(url, '/v1/orders');
    expect([missing.status, missing.body?.code]).toEqual([401, 'missing_api_key']);
    expect(missing.headers['www-authenticate']).toBe('Bearer realm="tollgate"');
    const { id, secret } = await keyWithLimit(1);
    expect((await ask(url, '/', { headers: bearer(secret) })).status).toBe(200);
    const limited = await ask(url, '/', { headers: bearer(secret) });
    expect([limited.status, Object.keys(limited.body ?? {}).toSorted()]).toEqual([
      429,
      ['error', 'limit', 'period', 'remaining', 'resetTime'],
    ]);
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0);
    expect(limited.headers['x-ratelimit-remaining']).toBe('0');
    expect(limited.headers['content-type']).toMatch(/^application\/json/);
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['203.0.113.7'] });
    const elsewhere = await ask(url, '/', { headers: bearer(secret) });
    expect([elsewhere.status, elsewhere.body?.code]).toEqual([403, 'address_not_allowed']);
    // One request is one decision: none was asked for twice.
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests >= 3);
    expect((await fleet.admin.detail(id)).usage).toMatchObject({ totalRequests: 3, successfulRequests: 1 });
  });

  it('a page may read why its request was rejected', async () => {
    const { headers } = await ask(url, '/v1/orders', { headers: { origin: ORIGIN } });
    expect(headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': expect.stringContaining('retry-after'),
      vary: expect.stringContaining('Origin'),
    });
  });

  it('the address of a request is the consumer’s', async () => {
    const { id, secret } = await fleet.admin.makeKey('restricted', 'ample');
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['127.0.0.2'] });
    const headers = bearer(secret);
    const statuses = [];
    for (const from of ['127.0.0.2', '127.0.0.1'])
      statuses.push((await ask(url, '/', { headers, from })).status);
    expect(statuses).toEqual([200, 403]);
  });

  it('paths are decided as the backend gets them, or rejected', async () => {
    for (const path of [
      '//v1//orders',
      '/v1%2forders',
      '/v1/%6frders',
      '/v1;a=b/orders',
      '/a/../b',
      '/a/%2e%2e/b',
      '/a/./b',
    ]) {
      const { id, secret } = await keyWithLimit(10);
      backend.received.length = 0;
      const response = await ask(url, path, { headers: bearer(secret) });
      const seen = backend.received.map((request) => request.url);
      if (response.status !== 200) {
        expect([path, seen, Math.floor(response.status / 100)]).toEqual([path, [], 4]);
        continue;
      }
      await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 1);
      const [{ endpoint }] = (await fleet.admin.detail(id)).usage.endpoints;
      expect([path, seen]).toEqual([path, [endpoint]]);
    }
  });

  it('an allowed preflight reaches the backend without a key, and another is a 403', async () => {
    backend.received.length = 0;
    const preflight = (origin: string): Promise<Asked> =>
      ask(url, '/v1/orders', {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    expect([(await preflight(ORIGIN)).status, (await preflight('https://evil.example.com')).status]).toEqual([
      200, 403,
    ]);
    const names = backend.received.flatMap(({ headers }) => Object.keys(headers));
    expect(names).toContain('origin');
    expect(names.filter((name) => /^(x-api-key$|tollgate-)/.test(name))).toEqual([]);
  });

  it('a WebSocket is decided once and then open', async () => {
    const { secret } = await keyWithLimit(1);
    const upgrade = `GET /chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
    const peer = await RawPeer.connect(front.port);
    peer.send(upgrade);
    expect(await peer.head()).toMatch(/^HTTP\/1\.1 101 /);
    peer.send('hello');
    await peer.until((text) => text.endsWith('hello'));
    peer.destroy();
    const second = await RawPeer.connect(front.port);
    second.send(upgrade);
    expect(await second.head()).toMatch(/^HTTP\/1\.1 429 /);
    second.destroy();
  });

  it('no byte of an upload of 100 MB reaches Tollgate', async () => {
    const { secret } = await fleet.admin.makeKey('upload', 'ample');
    [backend.uploaded, sent] = [0, 0];
    const chunks = Array.from({ length: UPLOAD_BYTES / CHUNK.length }, () => CHUNK);
    const response = await fetch(`${url}/upload`, {
      method: 'POST',
      headers: { ...bearer(secret), 'content-length': String(UPLOAD_BYTES) },
      body: Readable.toWeb(Readable.from(chunks)) as ReadableStream,
      duplex: 'half',
    } as RequestInit);
    expect([response.status, backend.uploaded]).toEqual([200, UPLOAD_BYTES]);
    expect(sent).toBeGreaterThan(0);
    expect(sent).toBeLessThan(4096);
  });

  it('a 500 of the backend is the backend’s', async () => {
    const { secret } = await fleet.admin.makeKey('fails', 'ample');
    const response = await ask(url, '/fails', { headers: bearer(secret) });
    expect([response.status, response.text]).toEqual([500, 'from the backend']);
    // With the limit of the key, and no other.
    const { ratelimit, 'ratelimit-policy': policy, 'x-ratelimit-limit': limit } = response.headers;
    expect([ratelimit, policy, limit]).toEqual([
      expect.stringMatching(/^"ample";r=\d+;t=\d+$/),
      '"ample";q=1000;w=86400',
      '1000',
    ]);
  });

  it('calls reuse connections', async () => {
    const { secret } = await fleet.admin.makeKey('reused', 'ample');
    // Each process or thread of a gateway keeps its own.
    for (let i = 0; i < 20; i += 1) await ask(url, '/', { headers: bearer(secret) });
    const before = relay.accepted;
    for (let i = 0; i < 40; i += 1) {
      const headers = i % 2 === 0 ? bearer(secret) : {};
      expect((await ask(url, '/', { headers })).status).toBe(i % 2 === 0 ? 200 : 401);
    }
    expect(relay.accepted - before).toBeLessThan(4);
  });

  it('a request is rejected while Tollgate is away', async () => {
    const { secret } = await fleet.admin.makeKey('away', 'ample');
    relay.reject();
    backend.received.length = 0;
    const asked = ask(url, '/', { headers: bearer(secret) });
    const response = await asked.finally(() => relay.pass(authorizePort()));
    expect([response.status, backend.received]).toEqual([kind === 'Caddy' ? 502 : 503, []]);
    await until(async () => (await ask(url, '/', { headers: bearer(secret) })).status === 200);
  });

  it('a request is rejected while Tollgate hangs', async () => {
    const { secret } = await fleet.admin.makeKey('hangs', 'ample');
    relay.silence();
    backend.received.length = 0;
    const response = await ask(url, '/', { headers: bearer(secret) }).finally(() => relay.pass());
    expect([response.status, backend.received]).toEqual([kind === 'Caddy' ? 504 : 503, []]);
    await until(async () => (await ask(url, '/', { headers: bearer(secret) })).status === 200);
  });
});

describe.each(GATEWAY_KINDS)('behind %s behind a balancer, configured as documented,', (kind) => {
  let front: RunningProgram;
  beforeAll(async () => {
    const neighbours = { tollgatePort: authorizePort(), backendPort: backend.port, balancer: BALANCER };
    front = await startFrontGateway(kind, neighbours);
  });
  afterAll(() => front?.stop());

  it('the address of a request is what the balancer says, and only the balancer says it', async () => {
    const { id, secret } = await fleet.admin.makeKey('restricted', 'ample');
    await fleet.admin.call('PATCH', `/consumer-api-key/${id}`, { allowedIps: ['203.0.113.7'] });
    const status = async (from: string, forwardedFor: string): Promise<number> => {
      const headers = { ...bearer(secret), 'x-forwarded-for': forwardedFor };
      return (await ask(`http://127.0.0.1:${front.port}`, '/', { headers, from })).status;
    };
    expect([
      await status(BALANCER, '198.51.100.1, 203.0.113.7'),
      await status(BALANCER, '203.0.113.7, 198.51.100.1'),
      await status('127.0.0.2', '203.0.113.7'),
    ]).toEqual([200, 403, 403]);
  });
});
