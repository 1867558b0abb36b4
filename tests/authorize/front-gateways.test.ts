import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import type { RunningGateway } from '../support/gateway.ts';
import type { RunningProgram } from '../support/running-program.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { type Asked, ask } from './support/ask.ts';
import { GATEWAY_KINDS, startFrontGateway } from './support/documented-gateways.ts';

/** A request as the backend got it. */
interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

const ORIGIN = 'https://app.example.com';
const UPLOAD_BYTES = 100 * 1024 * 1024;
const CHUNK = Buffer.alloc(1024 * 1024);

let fleet: Fleet<RunningGateway>;
let backend: Server;
const received: Received[] = [];
let uploaded = 0;
beforeAll(async () => {
  fleet = await startInProcessFleet(1, {
    ...{ AUTHORIZE_PORT: '0', BACKEND_URL: '', TRUSTED_PROXIES: '127.0.0.1', CORS_ALLOWED_ORIGINS: ORIGIN },
  });
  backend = createServer((req, res) => {
    const { method = '', url = '', headers } = req;
    received.push({ method, url, headers });
    req.on('data', (chunk: Buffer) => {
      uploaded += chunk.length;
    });
    req.on('end', () => {
      res.statusCode = url === '/fails' ? 500 : 200;
      res.end('from the backend');
    });
  });
  backend.on('upgrade', (_req, socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n',
    );
    socket.pipe(socket);
    socket.on('error', () => socket.destroy());
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  await fleet.admin.makePlan('ample', 1000, 'day');
});
afterAll(async () => {
  backend?.closeAllConnections();
  backend?.close();
  await fleet?.stop();
});

const authorizePort = (): number => Number(new URL(fleet.replicas[0]?.authorizeUrl ?? '').port);
const backendPort = (): number => (backend.address() as AddressInfo).port;
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

let plans = 0;
async function keyWithLimit(limit: number): Promise<{ readonly id: string; readonly secret: string }> {
  plans += 1;
  await fleet.admin.makePlan(`front-${plans}`, limit, 'day');
  return fleet.admin.makeKey(`key ${plans}`, `front-${plans}`);
}

/** What a consumer may send to pass for another one, or for another request. */
const FORGED = {
  'x-api-key': 'forged',
  'tollgate-key-id': 'forged',
  'tollgate-plan': 'forged',
  'tollgate-external-id': 'forged',
  'tollgate-customer-id': 'forged',
  // Names of the same variables for backends that are modelled on CGI.
  ...Object.fromEntries(
    ['x_api_key', 'X.Api.Key', 'tollgate_plan', 'Tollgate.Plan'].map((name) => [name, 'forged']),
  ),
  'x-original-uri': '/free',
  'x-original-url': 'http://api.example.com/free',
  'x-original-method': 'GET',
  'x-forwarded-uri': '/free',
  'x-forwarded-method': 'GET',
  'x-envoy-auth-failure-mode-allowed': 'true',
};

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
    front = await startFrontGateway(kind, { tollgatePort: relay.port, backendPort: backendPort() });
    url = `http://127.0.0.1:${front.port}`;
  });
  afterAll(async () => {
    await front?.stop();
    await relay?.stop();
  });

  it('an allowed request reaches the backend with the fields of its key', async () => {
    const { id, secret } = await fleet.admin.makeKey('allowed', 'ample');
    received.length = 0;
    const response = await ask(url, '/v1/orders?x=%2F', {
      headers: { ...bearer(secret), 'x-customer-id': 'c1' },
    });
    expect([response.status, response.text]).toEqual([200, 'from the backend']);
    expect(response.headers).toMatchObject({ 'x-ratelimit-limit': '1000', 'x-ratelimit-remaining': '999' });
    expect(response.headers['x-api-key']).toBeUndefined();
    expect(received).toEqual([
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

  it('nothing that a consumer sends makes it another consumer or another request', async () => {
    const { id, secret } = await keyWithLimit(1000);
    await fleet.admin.call('PATCH', `/rate-limit/front-${plans}`, { costs: [{ path: '/free', cost: 0 }] });
    received.length = 0;
    const response = await ask(url, '/costly', { headers: { ...FORGED, ...bearer(secret) } });
    expect([response.status, response.headers['x-ratelimit-remaining']]).toEqual([200, '999']);
    expect(received[0]?.headers).toMatchObject({
      'x-api-key': secret,
      'tollgate-key-id': id,
      'tollgate-plan': `front-${plans}`,
      'tollgate-customer-id': 'anonymous',
    });
    expect(received[0]?.headers['tollgate-external-id']).toBeUndefined();
    expect(Object.values(received[0]?.headers ?? {})).not.toContain('forged');
    if (kind === 'Envoy') expect(received[0]?.headers['x-envoy-auth-failure-mode-allowed']).toBeUndefined();
    expect((await ask(url, '/free', { headers: FORGED })).status).toBe(401);
    for (const path of ['/_tollgate', '/authorize/original', '/verify']) {
      expect([path, (await ask(url, path)).status]).toEqual([
        path,
        kind === 'nginx' && path === '/_tollgate' ? 404 : 401,
      ]);
    }
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
      received.length = 0;
      const response = await ask(url, path, { headers: bearer(secret) });
      const seen = received.map((request) => request.url);
      if (response.status !== 200) {
        expect([path, seen, Math.floor(response.status / 100)]).toEqual([path, [], 4]);
        continue;
      }
      await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 1);
      const [{ endpoint }] = (await fleet.admin.detail(id)).usage.endpoints;
      expect([path, seen]).toEqual([path, [endpoint]]);
    }
  });

  it('a preflight of an allowed page reaches the backend, and another is a 403', async () => {
    const preflight = (origin: string): Promise<Asked> =>
      ask(url, '/v1/orders', {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    expect([(await preflight(ORIGIN)).status, (await preflight('https://evil.example.com')).status]).toEqual([
      200, 403,
    ]);
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
    [uploaded, sent] = [0, 0];
    const chunks = Array.from({ length: UPLOAD_BYTES / CHUNK.length }, () => CHUNK);
    const response = await fetch(`${url}/upload`, {
      method: 'POST',
      headers: { ...bearer(secret), 'content-length': String(UPLOAD_BYTES) },
      body: Readable.toWeb(Readable.from(chunks)) as ReadableStream,
      duplex: 'half',
    } as RequestInit);
    expect([response.status, uploaded]).toEqual([200, UPLOAD_BYTES]);
    expect(sent).toBeGreaterThan(0);
    expect(sent).toBeLessThan(4096);
  });

  it('a 500 of the backend is the backend’s', async () => {
    const { secret } = await fleet.admin.makeKey('fails', 'ample');
    const response = await ask(url, '/fails', { headers: bearer(secret) });
    expect([response.status, response.text]).toEqual([500, 'from the backend']);
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
    received.length = 0;
    const response = await ask(url, '/', { headers: bearer(secret) });
    relay.pass(authorizePort());
    expect([response.status, received]).toEqual([kind === 'Caddy' ? 502 : 503, []]);
    await until(async () => (await ask(url, '/', { headers: bearer(secret) })).status === 200);
  });
});

describe.each(GATEWAY_KINDS.filter((kind) => kind !== 'Caddy'))('behind %s that fails open', (kind) => {
  let relay: TcpRelay;
  let front: RunningProgram;
  let url: string;
  beforeAll(async () => {
    relay = await TcpRelay.start(authorizePort());
    front = await startFrontGateway(kind, {
      ...{ tollgatePort: relay.port, backendPort: backendPort(), failsOpen: true },
    });
    url = `http://127.0.0.1:${front.port}`;
  });
  afterAll(async () => {
    await front?.stop();
    await relay?.stop();
  });

  it('a request reaches the backend while Tollgate is away, without forged fields', async () => {
    relay.reject();
    await until(async () => (await ask(url, '/v1/orders')).status === 200);
    received.length = 0;
    const response = await ask(url, '/v1/orders', { headers: FORGED });
    expect([response.status, received.length]).toEqual([200, 1]);
    for (const name of Object.keys(FORGED).filter((each) => /^(x-api-key|tollgate-)/.test(each)))
      expect([name, received[0]?.headers[name]]).toEqual([name, undefined]);
    expect(Object.values(received[0]?.headers ?? {})).not.toContain('forged');
    if (kind === 'Envoy') expect(received[0]?.headers['x-envoy-auth-failure-mode-allowed']).toBe('true');
    relay.pass(authorizePort());
  });

  it('nothing that a consumer sends passes for Tollgate away', async () => {
    await until(async () => (await ask(url, '/')).status === 401);
    received.length = 0;
    const attacks = [
      'GET / HTTP/1.1\r\nHost: a\r\nx-api-key: a\r\nx-api-key: b\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 tollgate\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nExpect: nonsense\r\n\r\n',
      'GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET /caf\xe9 HTTP/1.1\r\nHost: a\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: x-original-uri, authorization\r\n\r\n',
      'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n',
      'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n',
      `GET /${'x'.repeat(7900)} HTTP/1.1\r\nHost: a\r\nX-Filler: ${'y'.repeat(7000)}\r\n\r\n`,
      `GET / HTTP/1.1\r\nHost: a\r\n${Array.from({ length: 98 }, (_, i) => `X-${i}: y\r\n`).join('')}\r\n`,
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc',
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    ];
    for (const attack of attacks) {
      const socket = connect(front.port, '127.0.0.1');
      const peer = new RawPeer(socket);
      peer.send(attack);
      const head = await peer.head();
      peer.destroy();
      expect([attack.slice(0, 60), head.split('\r\n')[0]]).toEqual([
        attack.slice(0, 60),
        expect.stringMatching(/^HTTP\/1\.1 [45]\d\d/),
      ]);
    }
    expect(received).toEqual([]);
  });
});
