import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Admin } from '../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { until } from '../support/until.ts';

/** Says when a request has come that gets no response. */
const silent = new EventEmitter();

/** A backend that does what the path says. */
const behave: RequestListener = (req, res) => {
  switch (req.url) {
    case '/silent':
      silent.emit('request');
      return;
    case '/reset':
      req.socket.destroy();
      return;
    case '/truncated':
      res.writeHead(200, { 'content-length': '100' });
      res.write('begun', () => req.socket.end());
      return;
    case '/endless':
      res.writeHead(200);
      res.write('begun');
      return;
    case '/not-modified':
      res.writeHead(304).end();
      return;
    case '/not-found':
      res.writeHead(404).end('no');
      return;
    default:
      res.end('ok');
  }
};

const WEBSOCKET = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** When the client hangs up: never, with the request at the backend, or at the first byte of the body. */
  readonly leaves?: 'before the head' | 'in the body';
}

describe('a request is recorded once, when its response is over', () => {
  let backend: Server;
  let fleet: Fleet;
  beforeAll(async () => {
    backend = createServer(behave).on('upgrade', (_req, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.on('data', (data: Buffer) => socket.end(data));
      socket.on('error', () => {});
    });
    backend.listen(0, '127.0.0.1');
    await once(backend, 'listening');
    const { port } = backend.address() as AddressInfo;
    const settings = { BACKEND_URL: `http://127.0.0.1:${port}`, BACKEND_TIMEOUT_MS: '2000' };
    fleet = await startInProcessFleet(1, settings);
    await fleet.admin.makePlan('few', 1, 'day');
  });
  afterAll(async () => {
    await fleet?.stop();
    backend.closeAllConnections();
    backend.close();
  });

  /** Resolves with the status when the exchange is over, whichever way; 0 when there was none. */
  async function ask(
    secret: string,
    path: string,
    { method = 'GET', headers, leaves }: Asked,
  ): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    let status = 0;
    const sent = request(`${fleet.replicas[0]?.url}${path}`, {
      method,
      agent: false,
      headers: { authorization: `Bearer ${secret}`, ...headers },
    });
    sent.on('response', (response: IncomingMessage) => {
      status = response.statusCode ?? 0;
      response.on('data', () => leaves === 'in the body' && sent.destroy());
      response.on('error', () => {});
      response.on('close', () => resolve(status));
    });
    sent.on('upgrade', (response, socket) => {
      socket.on('close', () => resolve(response.statusCode ?? 0));
      socket.resume().write('hello');
    });
    sent.on('error', () => resolve(status));
    sent.end();
    if (leaves === 'before the head') silent.once('request', () => sent.destroy());
    return promise;
  }

  async function keyWith(planId?: string) {
    const { id, secret } = await fleet.admin.makeKey('of endings', planId);
    return { id, secret };
  }

  it.each<[string, string, Asked, number, 'successful' | 'failed']>([
    ['a whole response', '/', {}, 200, 'successful'],
    ['a HEAD', '/', { method: 'HEAD' }, 200, 'successful'],
    ['a POST', '/', { method: 'POST' }, 200, 'successful'],
    ['a 304', '/not-modified', {}, 304, 'successful'],
    ['a 404 of the backend', '/not-found', {}, 404, 'failed'],
    ['an upgrade', '/socket', { headers: WEBSOCKET }, 101, 'successful'],
    ['left by its client before the head', '/silent', { leaves: 'before the head' }, 0, 'failed'],
    ['left by its client in the body', '/endless', { leaves: 'in the body' }, 200, 'failed'],
    ['cut short by the backend', '/truncated', {}, 200, 'failed'],
    ['a 502', '/reset', {}, 502, 'failed'],
    ['a 504', '/silent', {}, 504, 'failed'],
  ])('%s', async (_name, path, asked, status, outcome) => {
    const { id, secret } = await keyWith();
    expect(await ask(secret, path, asked)).toBe(status);
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests > 0);
    const counts = {
      requests: 1,
      successful: outcome === 'successful' ? 1 : 0,
      failed: outcome === 'failed' ? 1 : 0,
    };
    const { usage } = await fleet.admin.detail(id);
    expect(usage).toMatchObject({
      totalRequests: 1,
      successfulRequests: counts.successful,
      failedRequests: counts.failed,
      endpoints: [{ endpoint: path, ...counts, averageResponseTimeMs: expect.any(Number) }],
      usageByCustomer: [{ customerId: 'anonymous', ...counts }],
    });
    expect(usage.endpoints[0].averageResponseTimeMs).toBeGreaterThan(0);
  });

  it('rejected with 429, which is no part of the mean response time', async () => {
    const { id, secret } = await keyWith('few');
    expect(await ask(secret, '/', {})).toBe(200);
    for (const _ of [1, 2, 3]) expect(await ask(secret, '/rejected', {})).toBe(429);
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests === 4);
    const { usage } = await fleet.admin.detail(id);
    expect(usage.endpoints).toEqual([
      { endpoint: '/rejected', requests: 3, successful: 0, failed: 3, averageResponseTimeMs: 0 },
      { endpoint: '/', requests: 1, successful: 1, failed: 0, averageResponseTimeMs: expect.any(Number) },
    ]);
  });

  it('without a valid key for no key', async () => {
    const { id, secret } = await keyWith();
    expect(await ask(`${secret.slice(0, -1)}!`, '/', {})).toBe(401);
    expect(await ask(secret, '/', {})).toBe(200);
    await until(async () => (await fleet.admin.detail(id)).usage.totalRequests > 0);
    expect((await fleet.admin.detail(id)).usage.totalRequests).toBe(1);
  });

  it('and not again when the replica stops', async () => {
    const { id, secret } = await keyWith();
    for (const _ of [1, 2, 3]) await ask(secret, '/', {});
    await fleet.replicas[0]?.stop();
    const next = await startInProcess(fleet.environment);
    expect((await new Admin(next.url).detail(id)).usage).toMatchObject({
      totalRequests: 3,
      successfulRequests: 3,
    });
    await next.stop();
  });
});
