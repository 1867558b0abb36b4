import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import express from 'express';
import { createPublicServer, type PublicServer } from '../../src/server/public-server.ts';
import { bodyOf } from '../proxy/support/body-bytes.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { withGateway } from '../proxy/support/with-gateway.ts';
import { fakeIntervals } from '../support/fake-intervals.ts';
import { testRequestIds } from '../support/request-ids.ts';
import { until } from '../support/until.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('the public port with the management interface', () => {
  const stage = withGateway({
    management: (req, res) => {
      res.setHeader('Content-Length', '10').end('management');
      void req;
    },
  });

  it.each([
    '/consumer-api-key',
    '/consumer-api-key/create?x',
    '/rate-limit/create',
    '/api-keys/apply-rate-limit',
    '/api-keys//x',
  ])('sends %s there and nowhere else', async (target) => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head(`GET ${target}`));
    await client.until((text) => text.endsWith('management'));
    expect(stage.backend.received).toBe('');
    expect(stage.gateway.observed).toEqual([]);
  });

  it.each([
    '//consumer-api-key',
    '/consumer%2dapi-key',
    '/%63onsumer-api-key/x',
    '/rate-limit%2fcreate',
    '//api-keys//x',
  ])('responses %s, another spelling of such a path, with 404', async (target) => {
    const client = await stage.gateway.send(stage.gateway.head(`GET ${target}`));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 404 .*"not_found"/s);
    expect(stage.backend.received).toBe('');
  });

  it('sends an absolute-form target of a reserved path there too', async () => {
    const client = await stage.gateway.send(
      stage.gateway.head('GET http://api.example.com/rate-limit/create'),
    );
    await client.until((text) => text.endsWith('management'));
  });

  it('holds heads for management to the same rules', async () => {
    const client = await stage.gateway.send(
      stage.gateway.head('POST /rate-limit/create', 'Transfer-Encoding: gzip, chunked'),
    );
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 501 /);
  });

  it.each(['/rate-limit', '/proxied'])(
    'serves %s with headers named like properties of objects',
    async (path) => {
      stage.backend.respond(OK);
      const names = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', '__proto__'];
      const client = await stage.gateway.send(
        stage.gateway.head(`GET ${path}`, ...names.map((name) => `${name}: x`)),
      );
      expect(await client.until((text) => /(?:management|ok)$/.test(text))).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it('does not upgrade reserved paths', async () => {
    const client = await stage.gateway.send(
      stage.gateway.head('GET /rate-limit', 'Connection: Upgrade', 'Upgrade: websocket'),
    );
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 404 /);
    expect(stage.backend.received).toBe('');
  });
});

describe('the public port without it', () => {
  const stage = withGateway();
  it('reserves no path', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.connect();
    for (const [i, target] of ['/consumer-api-key', '//consumer%2dapi-key'].entries()) {
      client.send(stage.gateway.head(`GET ${target}`));
      await client.until((text) => text.split('\r\n\r\nok').length === i + 2);
      expect(stage.backend.received).toContain(`GET ${target} HTTP/1.1`);
    }
  });
});

describe('a request of the management interface that takes longer than a connection may be idle', () => {
  const idleMs = 300;
  const begun: ServerResponse[] = [];
  const later = (_req: unknown, res: ServerResponse) => void begun.push(res);

  it.each([
    ['Node', later],
    ['Express', express().use(later)],
  ])('gets its response, as %s makes it', async (_by, management) => {
    const timeouts = { headMs: 60_000, idleMs, keepAliveMs: 60_000, probeMs: 60_000 };
    const server = createPublicServer({ management, timeouts, requestIds: testRequestIds() });
    const { port } = await server.listen(0, '127.0.0.1');
    const client = await RawPeer.connect(port);
    client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await until(() => begun.length === 1);
    // Other connections that are idle as long are cut meanwhile.
    for (let time = 0; time < 2; time += 1) {
      const unused = await RawPeer.connect(port);
      unused.send('GET ');
      await unused.ended();
    }
    begun.pop()?.end('late');
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*late/s);
    await server.close(0);
  });
});

describe('the port of the management interface alone', () => {
  let server: PublicServer;
  let port: number;
  beforeEach(async () => {
    server = createPublicServer({
      management: (req, res) => void res.end(`management of ${req.url}`),
      requestIds: testRequestIds(),
    });
    ({ port } = await server.listen(0, '127.0.0.1'));
  });
  afterEach(() => server.close(0));

  async function responseTo(head: string, body = ''): Promise<string> {
    const client = await RawPeer.connect(port);
    client.send(`${head}\r\nHost: a\r\nConnection: close\r\n\r\n${body}`);
    return client.ended();
  }

  it.each(['/', '/consumer-api-key', '//consumer-api-key/a', '/anything?x'])(
    'sends every path there, %s too',
    async (path) => {
      const isInDisguise = path.startsWith('//');
      expect(await responseTo(`GET ${path} HTTP/1.1`)).toMatch(
        isInDisguise ? / 404 .*"not_found"/s : `management of ${path}`,
      );
    },
  );

  it.each<readonly [string, string, number]>([
    ['length and coding', 'POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5', 400],
    ['another coding', 'POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked', 501],
    ['a folded field', 'GET / HTTP/1.1\r\nA: b\r\n c', 400],
    ['two Hosts', 'GET / HTTP/1.1\r\nHost: a', 400],
    ['another version', 'GET / HTTP/2.0', 505],
    ['a malformed version', 'GET / HTTP/1.A', 400],
    ['no final chunked', 'POST / HTTP/1.1\r\nTransfer-Encoding: gzip', 400],
    ['OPTIONS *', 'OPTIONS * HTTP/1.1', 204],
    ['TRACE', 'TRACE / HTTP/1.1', 405],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1', 405],
    ['dot segments', 'GET /rate-limit/../x HTTP/1.1', 400],
    ['dot segments with parameters', 'GET /rate-limit/..;a=b/x HTTP/1.1', 400],
    ['percent-encoded dot segments with parameters', 'GET /rate-limit/.%2e%3bx HTTP/1.1', 400],
    ['an upgrade', 'GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket', 404],
    [
      'an upgrade with a body',
      'GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 1',
      400,
    ],
    ['a head over 16 KiB', `GET / HTTP/1.1\r\nA: ${'x'.repeat(17_000)}`, 431],
  ])('%s is rejected', async (_what, head, status) => {
    const response = await responseTo(head, '0\r\n\r\n');
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(response).not.toContain('management');
  });
});

describe('closing', () => {
  const stage = withGateway({ shutdownDrainMs: 60_000 });

  it('lets requests in progress finish and closes unused connections at once', async () => {
    const unused = await stage.gateway.send(stage.gateway.head('GET /'));
    const first = await stage.backend.connection(0);
    await first.head();
    const busy = await stage.gateway.send(stage.gateway.head('GET /busy'));
    const second = await stage.backend.connection(1);
    await second.head();
    first.send(OK);
    await unused.until((text) => text.endsWith('ok'));

    const closed = stage.gateway.close();
    await unused.ended();
    expect(busy.ending).toBe('open');
    second.send(OK);
    expect(await busy.ended()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n.*ok$/s);
    await closed;
    await expect(stage.gateway.connect()).rejects.toThrow(/ECONNREFUSED/);
  });
});

describe('closing while a client sends one request behind another', () => {
  const stage = withGateway({ shutdownDrainMs: 60_000 });

  it('does not lose the response to the first one', async () => {
    const part = Buffer.alloc(16 * 1024, 'x');
    const parts = 64;
    const client = await stage.gateway.send(
      stage.gateway.head('GET /1') + stage.gateway.head('POST /2', `Content-Length: ${parts * part.length}`),
    );
    client.socket.pause();
    const backend = await stage.backend.connection();
    await backend.head();
    const closed = stage.gateway.close();
    backend.send(OK);
    await until(() => stage.gateway.observed.length === 1);
    for (let sent = 0; sent < parts; sent += 1) {
      client.send(part);
      await nextTurn();
    }
    client.socket.resume();
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n.*ok$/s);
    expect(client.ending).toBe('fin');
    await closed;
  });
});

describe('closing while a client goes on with a body that was rejected', () => {
  beforeEach(fakeIntervals);
  afterEach(() => {
    jest.useRealTimers();
  });

  it('waits for it for two seconds at most', async () => {
    let socket: Socket | undefined;
    const server = createPublicServer({
      management: (req, res) => {
        socket = req.socket;
        res.shouldKeepAlive = false;
        res.writeHead(401).end();
      },
      requestIds: testRequestIds(),
    });
    const { port } = await server.listen(0, '127.0.0.1');
    const client = await RawPeer.connect(port, true);
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 401 /);
    const closed = server.close(600_000);
    for (const isOpen of [true, false]) {
      const read = (socket?.bytesRead ?? 0) + 512;
      client.send(Buffer.alloc(512));
      await until(() => (socket?.bytesRead ?? 0) >= read);
      jest.advanceTimersByTime(1000);
      expect(socket?.destroyed).toBe(!isOpen);
    }
    await closed;
    client.destroy();
  });
});

describe('closing while clients take responses that have ended', () => {
  /** More than the system keeps for a connection. */
  const LARGE = Buffer.alloc(12 * 1024 * 1024, 'x');
  let hasEnded = false;
  const stage = withGateway({
    shutdownDrainMs: 60_000,
    management: (_req, res) => {
      res.writeHead(200, { 'content-length': LARGE.length });
      res.end(LARGE);
      hasEnded = true;
    },
  });

  const isListening = () =>
    stage.gateway.connect().then(
      (client) => client.destroy() === undefined,
      () => false,
    );

  it('lets them take all of it, and closes the connection then', async () => {
    const client = await stage.gateway.connect();
    client.socket.pause();
    client.send('GET /rate-limit HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => hasEnded);
    const closed = stage.gateway.close();
    await until(() => isListening().then((is) => !is));
    client.socket.resume();
    await client.ended();
    expect(bodyOf(client.bytes)).toHaveLength(LARGE.length);
    expect(client.ending).toBe('fin');
    await closed;
  });
});

describe('closing within little time', () => {
  const stage = withGateway({ shutdownDrainMs: 200 });

  it('cuts what is not done in time', async () => {
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await (await stage.backend.connection()).head();
    await stage.gateway.close();
    await client.ended();
    await (await stage.backend.connection()).ended();
  });

  it('blames no client for what it cuts, begun or not', async () => {
    const { gateway, backend } = stage;
    backend.onConnection(async (connection) => {
      const head = await connection.head();
      if (head.startsWith('GET /begun '))
        connection.send('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun');
    });
    const begun = await gateway.send(gateway.head('GET /begun'));
    await begun.until((text) => text.endsWith('begun'));
    const waiting = await gateway.send(gateway.head('GET /waiting'));
    await until(() => gateway.proxy.backendLoad.busy === 2);
    const left = await gateway.send(gateway.head('GET /left'));
    await until(() => gateway.proxy.backendLoad.busy === 3);
    left.destroy();
    await until(() => gateway.observed.length === 1);
    await gateway.close();
    await Promise.all([begun.ended(), waiting.ended()]);
    const endings = gateway.observed.map(({ path, status, outcome }) => [path, status, outcome]);
    expect(endings.toSorted()).toEqual([
      ['/begun', 200, 'unavailable'],
      ['/left', 0, 'client_gone'],
      ['/waiting', 0, 'unavailable'],
    ]);
    expect(gateway.observed.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined]);
  });
});

describe('cross-origin callers', () => {
  const stage = withGateway({ corsAllowedOrigins: ['https://app.example'] });

  it('get a preflight response without a key when their origin is listed', async () => {
    const client = await stage.gateway.send(
      [
        'OPTIONS /a HTTP/1.1',
        'Host: a',
        'Origin: https://app.example',
        'Access-Control-Request-Method: PUT',
        'Access-Control-Request-Headers: authorization,x-customer-id',
        '',
        '',
      ].join('\r\n'),
    );
    const response = await client.head();
    expect(response).toMatch(/^HTTP\/1\.1 204 /);
    expect(response).toContain('\r\nAccess-Control-Allow-Origin: https://app.example');
    expect(response).toContain('\r\nAccess-Control-Allow-Methods: PUT');
    expect(response).toContain('\r\nAccess-Control-Allow-Headers: authorization,x-customer-id');
    expect(stage.backend.received).toBe('');
    expect(stage.gateway.recorded).toEqual([]);
  });

  it('may read responses and errors, in place of what the backend allows', async () => {
    stage.backend.respond(
      OK.replace('200 OK\r\n', '200 OK\r\nAccess-Control-Allow-Origin: *\r\nVary: Accept\r\n'),
    );
    const client = await stage.gateway.send(
      stage.gateway.head('GET /', 'Origin: https://app.example', 'Connection: close'),
    );
    const response = await client.ended();
    expect(response.match(/access-control-allow-origin/gi)).toHaveLength(1);
    expect(response).toContain('\r\nAccess-Control-Allow-Origin: https://app.example\r\n');
    expect(response).toMatch(/\r\nAccess-Control-Expose-Headers: .*x-ratelimit-remaining/);
    expect(response).toContain('\r\nVary: Accept\r\n');
    expect(response).toContain('\r\nVary: Origin\r\n');
    const rejected = await stage.gateway.send(
      'GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n',
    );
    const error = await rejected.until((text) => text.endsWith('}'));
    expect(error).toMatch(/^HTTP\/1\.1 401 /);
    expect(error).toContain('\r\nAccess-Control-Allow-Origin: https://app.example\r\n');
  });

  it('of other origins are treated like any other client', async () => {
    stage.backend.respond(OK.replace('200 OK\r\n', '200 OK\r\nAccess-Control-Allow-Origin: *\r\n'));
    const preflight = await stage.gateway.send(
      'OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n',
    );
    expect(await preflight.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 401 /);
    const client = await stage.gateway.send(
      stage.gateway.head('GET /', 'Origin: https://evil.example', 'Connection: close'),
    );
    expect(await client.ended()).toContain('\r\nAccess-Control-Allow-Origin: *\r\n');
  });
});
