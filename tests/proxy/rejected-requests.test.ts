import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const EXPECTS = ['Expect: 100-continue', 'Transfer-Encoding: chunked'];

describe('a request that is rejected while it waits', () => {
  const stage = withGateway({ backendConnections: 1, backendTimeoutMs: 60_000 });
  let accepted: Socket[] = [];
  const onSocket = (message: unknown): void => {
    accepted.push((message as { readonly socket: Socket }).socket);
  };
  beforeEach(() => {
    accepted = [];
    subscribe('net.server.socket', onSocket);
  });
  afterEach(() => {
    unsubscribe('net.server.socket', onSocket);
  });

  /** The gateway's end of a client's connection. */
  function serverSide(client: RawPeer): Socket {
    const socket = accepted.find(({ remotePort }) => remotePort === client.socket.localPort);
    if (socket === undefined) throw new Error('no such connection');
    return socket;
  }

  /** As with a client that reads nothing and has filled its window: what is written to it stays here. */
  function fillWindow(client: RawPeer): void {
    Object.assign(serverSide(client), { _write() {}, _writev() {} });
  }

  /** As with a window that is full for a while: what is written to the client from now on waits until `go` is called. */
  function delayWrites(client: RawPeer): { readonly delayed: Promise<void>; readonly go: () => void } {
    const socket = serverSide(client);
    const write = socket._write.bind(socket);
    const delayed = Promise.withResolvers<void>();
    const going = Promise.withResolvers<void>();
    const wait: Socket['_write'] = (...written) => {
      delayed.resolve();
      void going.promise.then(() => write(...written));
    };
    Object.assign(socket, { _write: wait, _writev: undefined });
    return { delayed: delayed.promise, go: going.resolve };
  }

  it('sends no backend request, though its client reads nothing', async () => {
    const { gateway, backend } = stage;
    const busy = await gateway.send(gateway.head('GET /busy'));
    await (await backend.connection()).head();
    const unread = await gateway.send(gateway.head('POST /rejected', ...EXPECTS));
    await until(() => gateway.proxy.backendLoad.waiting === 1);
    fillWindow(unread);
    unread.send('no chunk\r\n');
    await until(() => gateway.proxy.backendLoad.waiting === 0);
    expect(gateway.proxy.backendPlaces).toBe(1);
    backend.respond(OK);
    backend.connections[0]?.send(OK);
    await busy.until((text) => text.endsWith('ok'));
    // Every place is free, and every later request is served.
    for (let i = 0; i < 5; i += 1) {
      const next = await gateway.send(gateway.head(`GET /${i}`));
      await next.until((text) => text.endsWith('ok'));
    }
    expect(unread.text).toBe('');
    expect(backend.received).not.toContain('/rejected');
    expect(gateway.faults).toEqual([]);
  });

  it('takes no place with the backend when its key is found afterwards', async () => {
    const { gateway, backend } = stage;
    gateway.keyStore.hold();
    const unread = await gateway.send(gateway.head('POST /rejected', 'Transfer-Encoding: chunked'));
    await until(() => gateway.proxy.inFlight === 1);
    fillWindow(unread);
    unread.send('no chunk\r\n');
    await gateway.catchUp();
    gateway.keyStore.release();
    backend.respond(OK);
    const next = await gateway.send(gateway.head('GET /next'));
    await next.until((text) => text.endsWith('ok'));
    expect(gateway.proxy.backendPlaces).toBe(0);
    expect(gateway.proxy.inFlight).toBe(1);
    expect(backend.received).not.toContain('/rejected');
  });

  it('keeps its outcome when its origin is found afterwards', async () => {
    const { gateway } = stage;
    await gateway.keyStore.allowOrigins(gateway.secret, ['https://app.example']);
    gateway.keyStore.hold();
    const lines = ['Host: a', 'Origin: https://app.example', 'Access-Control-Request-Method: GET'];
    const head = ['OPTIONS /preflight HTTP/1.1', ...lines, 'Transfer-Encoding: chunked', '', ''].join('\r\n');
    const client = await gateway.send(head);
    await until(() => gateway.proxy.inFlight === 1);
    const { delayed, go } = delayWrites(client);
    client.send('no chunk\r\n');
    await delayed;
    gateway.keyStore.release();
    await nextTurn();
    go();
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 400 /);
    await until(() => gateway.observed.length === 1);
    expect(gateway.observed).toMatchObject([{ status: 400, outcome: 'invalid_request' }]);
  });

  it('loses no place when that happens again and again', async () => {
    const { gateway, backend } = stage;
    backend.respond(OK);
    for (let i = 0; i < 20; i += 1) {
      backend.connections.at(-1)?.respondToEachHead('');
      backend.onConnection(() => {});
      const busy = await gateway.send(gateway.head('GET /busy'));
      await until(() => gateway.proxy.backendLoad.busy === 1);
      const rejected = await gateway.send(gateway.head('POST /rejected', ...EXPECTS));
      await until(() => gateway.proxy.backendLoad.waiting === 1);
      rejected.send('no chunk\r\n');
      await rejected.ended();
      busy.destroy();
      await gateway.settled();
    }
    backend.onConnection((connection) => connection.respondToEachHead(OK));
    const last = await gateway.send(gateway.head('GET /'));
    await last.until((text) => text.endsWith('ok'));
    expect(gateway.faults).toEqual([]);
  });

  it('ends its request when it has begun already', async () => {
    const { gateway, backend } = stage;
    const client = await gateway.send(gateway.head('POST /', 'Transfer-Encoding: chunked'));
    const connection = await backend.connection();
    await connection.head();
    await until(() => accepted.length > 0);
    fillWindow(client);
    client.send('5\r\nhello\r\nno chunk\r\n');
    expect(await connection.ended()).not.toMatch(/0\r\n\r\n$/);
    await until(() => gateway.proxy.backendPlaces === 0);
    expect(client.text).toBe('');
  });
});

describe('what throws in the path of a request', () => {
  let broken: 'limiter' | 'usage' | undefined;
  const stage = withGateway({
    backendConnections: 1,
    usage: {
      record: () => {
        if (broken === 'usage') throw new Error('usage is broken');
      },
    },
    limiter: {
      decide: (_subject, decided) => {
        if (broken === 'limiter') throw new Error('the limiter is broken');
        decided({ kind: 'unlimited', degraded: false });
      },
    },
  });

  it('costs that request a 500, and no other anything', async () => {
    const { gateway, backend } = stage;
    backend.respond(OK);
    broken = 'limiter';
    for (let i = 0; i < 5; i += 1) {
      const client = await gateway.send(gateway.head('GET /', 'Connection: close'));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 500 .*"internal_error"/s);
      await until(() => gateway.proxy.backendPlaces === 0);
    }
    broken = undefined;
    const client = await gateway.send(gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok'));
  });

  it('is logged when the response is over already', async () => {
    const { gateway, backend } = stage;
    backend.respond(OK);
    broken = 'usage';
    for (let i = 0; i < 5; i += 1) {
      const client = await gateway.send(gateway.head('GET /', 'Connection: close'));
      await client.until((text) => text.endsWith('ok'));
    }
    await until(() => gateway.faults.length === 5);
    expect(gateway.faults[0]).toBe('a request met a fault of the gateway: usage is broken');
    await gateway.settled();
  });
});
