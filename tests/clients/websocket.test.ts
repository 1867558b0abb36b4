import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { WebSocket, WebSocketServer } from 'ws';
import { Admin } from '../support/admin.ts';
import { startGateway } from '../support/gateway.ts';
import { until, untilAtRest } from '../support/until.ts';
import { withClientStage } from './support/stage.ts';

const stage = withClientStage();
const opened: WebSocket[] = [];
let server: WebSocketServer;

beforeAll(() => {
  server = new WebSocketServer({ server: stage.backend, perMessageDeflate: true });
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
});
afterEach(() => {
  for (const socket of [...opened.splice(0), ...server.clients]) socket.terminate();
});

/** A connected pair: the client's end, and the backend's. */
async function open(
  secret = stage.key.secret,
  { url = stage.gateway.url, ...options }: WebSocket.ClientOptions & { url?: string } = {},
): Promise<{ readonly client: WebSocket; readonly backend: WebSocket }> {
  const accepted = once(server, 'connection');
  const client = new WebSocket(`${url.replace('http', 'ws')}/chat?room=1`, ['one', 'two'], {
    headers: { authorization: `Bearer ${secret}` },
    ...options,
  });
  opened.push(client);
  client.on('error', () => {});
  const [[backend]] = await Promise.all([accepted, once(client, 'open')]);
  return { client, backend: backend as WebSocket };
}

async function echoed(client: WebSocket, data: string | Buffer): Promise<Buffer> {
  const response = once(client, 'message');
  client.send(data);
  return (await response)[0] as Buffer;
}

describe('a WebSocket through the gateway', () => {
  it('carries messages of any size both ways, with compression, pings and pongs', async () => {
    const { client } = await open();
    expect(client.protocol).toBe('one');
    expect(client.extensions).toContain('permessage-deflate');
    expect((await echoed(client, 'hello')).toString()).toBe('hello');
    for (const size of [0, 1, 125, 126, 65_535, 65_536, 3_000_000]) {
      const data = randomBytes(size);
      expect((await echoed(client, data)).equals(data)).toBe(true);
    }
    const pong = once(client, 'pong');
    client.ping('are you there');
    expect(String((await pong)[0])).toBe('are you there');
  });

  it('passes codes and reasons of a close from either side', async () => {
    const first = await open();
    const seen = once(first.backend, 'close');
    first.client.close(4001, 'bye');
    expect((await seen).map(String)).toEqual(['4001', 'bye']);
    const second = await open();
    const heard = once(second.client, 'close');
    second.backend.close(4002, 'done');
    expect((await heard).map(String)).toEqual(['4002', 'done']);
  });

  it('ends for one side when the other is cut', async () => {
    const first = await open();
    const seen = once(first.backend, 'close');
    first.client.terminate();
    expect((await seen)[0]).toBe(1006);
    const second = await open();
    const heard = once(second.client, 'close');
    second.backend.terminate();
    expect((await heard)[0]).toBe(1006);
  });

  it('is rejected without a key, with a wrong one and over the limit, as JSON', async () => {
    await stage.admin.makePlan('one-socket', 1, 'hour');
    const { secret } = await stage.admin.makeKey('limited', 'one-socket');
    await open(secret);
    for (const [presented, status, code] of [
      [undefined, 401, 'missing_api_key'],
      [`Bearer ${secret}x`, 401, 'invalid_api_key'],
      [`Bearer ${secret}`, 429, undefined],
    ] as const) {
      const client = new WebSocket(stage.gateway.url.replace('http', 'ws'), {
        headers: presented === undefined ? {} : { authorization: presented },
      });
      client.on('error', () => {});
      const [, response] = await once(client, 'unexpected-response');
      expect(response.statusCode).toBe(status);
      const body = JSON.parse(String((await once(response, 'data'))[0]));
      if (code === undefined) expect(body).toMatchObject({ limit: 1, remaining: 0 });
      else expect(body).toMatchObject({ code });
    }
  });

  it('counts as one request, with the time that the upgrade took', async () => {
    const { id, secret } = await stage.admin.makeKey('counted');
    const openedAt = performance.now();
    const { client } = await open(secret);
    for (let i = 0; i < 10; i += 1) await echoed(client, 'x');
    await until(async () => (await stage.admin.detail(id)).usage.totalRequests === 1);
    const { usage } = await stage.admin.detail(id);
    expect(usage).toMatchObject({ totalRequests: 1, successfulRequests: 1, failedRequests: 0 });
    expect(usage.endpoints).toMatchObject([{ endpoint: '/chat', requests: 1 }]);
    expect(usage.endpoints[0].averageResponseTimeMs).toBeGreaterThan(0);
    expect(usage.endpoints[0].averageResponseTimeMs).toBeLessThan(performance.now() - openedAt);
  });

  it.each(['deleted', 'disabled'] as const)('is closed when its key is %s', async (how) => {
    const { id, secret } = await stage.admin.makeKey(how);
    const kept = await open();
    const { client, backend } = await open(secret);
    const ended = Promise.all([once(client, 'close'), once(backend, 'close')]);
    if (how === 'deleted') await stage.admin.deleteKey(id);
    else await stage.admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    await ended;
    expect((await echoed(kept.client, 'still here')).toString()).toBe('still here');
  });

  it('holds a fast sender back for a slow receiver, and loses nothing', async () => {
    const { client, backend } = await open(undefined, { perMessageDeflate: false });
    const message = randomBytes(1024 * 1024);
    const messages = 64;
    client.pause();
    for (let i = 0; i < messages; i += 1) backend.send(message);
    // What is not in the sender's buffer is in those of two sockets, or in the gateway.
    const left = await untilAtRest(() => backend.bufferedAmount, messages * message.length);
    expect(left).toBeGreaterThan(36 * message.length);
    let received = 0;
    const all = new Promise<void>((resolve) => {
      client.on('message', (data: Buffer) => {
        received += data.length;
        if (received === messages * message.length) resolve();
      });
    });
    client.resume();
    await all;
  });

  it('stays during the drain time of a gateway that stops, and is closed after it', async () => {
    const stopping = await startGateway({ ...stage.environment, SHUTDOWN_DRAIN_MS: '5000' });
    const { secret } = await new Admin(stopping.url).makeKey('stopping');
    const { client, backend } = await open(secret, { url: stopping.url });
    const closed = Promise.all([once(client, 'close'), once(backend, 'close')]);
    const stopped = stopping.stop();
    expect((await echoed(client, 'during the drain')).toString()).toBe('during the drain');
    await closed;
    expect(await stopped).toBe(0);
  });
});
