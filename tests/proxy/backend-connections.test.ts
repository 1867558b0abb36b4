import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { TestGateway } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('connections to the backend', () => {
  const stage = withGateway();

  it('are used again, whatever the method, the body or the end of the client', async () => {
    stage.backend.onConnection((connection) => {
      let responses = 0;
      connection.socket.on('data', () => {
        const complete = connection.text.split('END').length - 1;
        for (; responses < complete; responses += 1) connection.send(OK);
      });
    });
    for (const [line, ...rest] of [
      ['GET /END', '\r\n'],
      ['POST /', 'Content-Length: 3\r\n\r\nEND'],
      ['POST /', 'Transfer-Encoding: chunked\r\n\r\n3\r\nEND\r\n0\r\n\r\n'],
      ['DELETE /END', 'Connection: close\r\n\r\n'],
      ['PUT /END', 'Content-Length: 0\r\n\r\n'],
      ['OPTIONS /END', '\r\n'],
    ] as const) {
      const client = await stage.gateway.send(stage.gateway.head(line).slice(0, -2) + rest.join(''));
      await client.until((text) => text.endsWith('ok'));
      await stage.gateway.settled();
      client.destroy();
    }
    expect(stage.backend.connections).toHaveLength(1);
  });

  it('are closed after HEAD, which the request announces to the backend', async () => {
    stage.backend.respond('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n');
    const client = await stage.gateway.connect();
    for (let i = 1; i <= 3; i += 1) {
      client.send(stage.gateway.head('HEAD /'));
      await client.until((text) => text.split('\r\n\r\n').length === i + 1);
    }
    expect(stage.backend.connections).toHaveLength(3);
    for (const connection of stage.backend.connections) {
      expect(connection.text).toMatch(/\r\nconnection: close\r\n/i);
      await connection.ended();
    }
  });

  it('get each request in one segment, and clients each response', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.connect();
    // In two segments the second one waits for the acknowledgement of the first: 40 ms a request.
    const segments = { ofRequests: 0, ofResponses: 0 };
    client.socket.on('data', () => (segments.ofResponses += 1));
    client.send(stage.gateway.head('GET /'));
    const connection = await stage.backend.connection();
    connection.socket.on('data', () => (segments.ofRequests += 1));
    await client.until((text) => text.endsWith('ok'));
    Object.assign(segments, { ofRequests: 0, ofResponses: 0 });
    for (let i = 2; i <= 51; i += 1) {
      client.send(stage.gateway.head('GET /'));
      await client.until((text) => text.split('\r\n\r\nok').length === i + 1);
    }
    expect(segments).toEqual({ ofRequests: 50, ofResponses: 50 });
    expect(stage.backend.connections).toHaveLength(1);
  });

  describe('neither side outlives the other', () => {
    it('a client that leaves before the response ends the request', async () => {
      const client = await stage.gateway.send(stage.gateway.head('GET /'));
      const backend = await stage.backend.connection();
      await backend.head();
      client.destroy();
      await backend.ended();
      await until(() => stage.gateway.observed.length === 1);
      expect(stage.gateway.observed[0]).toMatchObject({ status: 0, outcome: 'client_gone' });
      expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
    });

    it('a client that resets, or leaves in mid-response, ends the request', async () => {
      const first = await stage.gateway.send(stage.gateway.head('GET /'));
      const backend = await stage.backend.connection();
      await backend.head();
      first.reset();
      await backend.ended();
      stage.backend.respond('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello');
      const second = await stage.gateway.send(stage.gateway.head('GET /'));
      await second.until((text) => text.endsWith('hello'));
      second.destroy();
      await (await stage.backend.connection(1)).ended();
      await until(() => stage.gateway.recorded.length === 2);
      expect(stage.gateway.recorded.map(({ successful }) => successful)).toEqual([false, false]);
    });

    it('a client that leaves in mid-body never ends its body at the backend', async () => {
      const client = await stage.gateway.send(
        `${stage.gateway.head('POST /', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`,
      );
      const backend = await stage.backend.connection();
      await backend.until((text) => text.includes('hello'));
      client.end();
      expect(await backend.ended()).not.toMatch(/0\r\n\r\n$/);
    });
  });

  describe('a request whose backend connection ends', () => {
    /** A connection that serves one request and closes as soon as the second one arrives, without a byte. */
    function closeOnSecond(way: 'end' | 'reset'): void {
      stage.backend.onConnection((connection, index) => {
        if (index > 0) {
          connection.respondToEachHead(OK);
          return;
        }
        connection.socket.on('data', () => {
          const heads = connection.text.split('\r\n\r\n').length - 1;
          if (heads === 1 && connection.text.endsWith('\r\n\r\n')) connection.send(OK);
          else if (heads > 1) connection[way]();
        });
      });
    }

    it.each([
      ['GET', 'end'],
      ['GET', 'reset'],
      ['HEAD', 'end'],
      ['OPTIONS', 'reset'],
    ] as const)('%s is sent again when a used connection ends by %s', async (method, way) => {
      closeOnSecond(way);
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.endsWith('ok'));
      client.send(stage.gateway.head(`${method} /two`));
      await client.until((text) => text.split('HTTP/1.1 200 OK').length === 3);
      expect(stage.backend.received.split(`${method} /two`)).toHaveLength(3);
      await stage.gateway.settled();
      expect(stage.gateway.recorded).toHaveLength(2);
    });

    it.each(['DELETE', 'POST', 'PUT', 'PATCH'])('%s is not sent again', async (method) => {
      closeOnSecond('reset');
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.endsWith('ok'));
      client.send(stage.gateway.head(`${method} /two`));
      await client.until((text) => text.includes('HTTP/1.1 502 '));
      expect(stage.backend.received.split(`${method} /two`)).toHaveLength(2);
    });

    it('a GET with a body is not sent again', async () => {
      closeOnSecond('end');
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.endsWith('ok'));
      client.send(`${stage.gateway.head('GET /two', 'Content-Length: 1')}x`);
      await client.until((text) => text.includes('HTTP/1.1 502 '));
      expect(stage.backend.received.split('GET /two')).toHaveLength(2);
    });

    it('a GET on a new connection is not sent again', async () => {
      stage.backend.onConnection(async (connection) => {
        await connection.head();
        connection.end();
      });
      const client = await stage.gateway.send(stage.gateway.head('GET /'));
      await client.until((text) => text.includes('HTTP/1.1 502 '));
      expect(stage.backend.connections).toHaveLength(1);
    });

    it('a GET is not sent again when a byte of its response has arrived', async () => {
      stage.backend.onConnection((connection) => {
        connection.socket.on('data', () => {
          const heads = connection.text.split('\r\n\r\n').length - 1;
          connection.send(heads === 1 ? OK : 'HTTP/1.1 2');
          if (heads > 1) connection.end();
        });
      });
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.endsWith('ok'));
      client.send(stage.gateway.head('GET /two'));
      await client.until((text) => text.includes('HTTP/1.1 502 '));
      expect(stage.backend.connections).toHaveLength(1);
    });

    it('a GET is not sent a third time', async () => {
      stage.backend.onConnection((connection, index) => {
        connection.socket.on('data', () => {
          const heads = connection.text.split('\r\n\r\n').length - 1;
          if (index === 0 && heads === 1) connection.send(OK);
          else connection.end();
        });
      });
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.endsWith('ok'));
      client.send(stage.gateway.head('GET /two'));
      await client.until((text) => text.includes('HTTP/1.1 502 '));
      expect(stage.backend.connections).toHaveLength(2);
    });

    it('a connection that was closed while idle fails no request, not even a POST', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(stage.gateway.head('GET /one'));
      await client.until((text) => text.endsWith('ok'));
      const first = await stage.backend.connection();
      first.end();
      await first.ended();
      client.send(`${stage.gateway.head('POST /two', 'Content-Length: 1')}x`);
      await client.until((text) => text.split('\r\n\r\nok').length === 3);
    });
  });

  it('is rejected: 502 that reveals nothing of the backend', async () => {
    const { port } = stage.backend;
    await stage.backend.stop();
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    const response = await client.until((text) => text.endsWith('}'));
    expect(response).toMatch(/^HTTP\/1\.1 502 /);
    expect(response).not.toContain(String(port));
    expect(response).not.toMatch(/127\.0\.0\.1|ECONN/);
    expect(response).toContain('X-RateLimit-Remaining: ');
  });

  it('can not be made by name: 502', async () => {
    const other = await TestGateway.start('http://backend.invalid');
    try {
      const client = await other.send(other.head('GET /'));
      expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 502 .*"bad_gateway"/s);
    } finally {
      await other.stop();
    }
  });

  it.each([
    ['the client', 600_000],
    ['the deadline: 504', 300],
  ] as const)('that is still being made ends with %s', async (end, backendTimeoutMs) => {
    // The backend accepts, and never says a word of TLS.
    const other = await TestGateway.start(stage.backend.url.replace('http:', 'https:'), { backendTimeoutMs });
    try {
      const client = await other.send(other.head('GET /'));
      const connection = await stage.backend.connection();
      if (end === 'the client') client.destroy();
      else
        expect(await client.until((text) => text.endsWith('}'))).toMatch(
          /^HTTP\/1\.1 504 .*"gateway_timeout"/s,
        );
      await connection.ended();
      await other.settled();
    } finally {
      await other.stop();
    }
  });

  it('can not be made with TLS: 502', async () => {
    stage.backend.respond(OK);
    const other = await TestGateway.start(stage.backend.url.replace('http:', 'https:'));
    try {
      const client = await other.send(other.head('GET /'));
      (await stage.backend.connection()).end();
      expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 502 .*"bad_gateway"/s);
    } finally {
      await other.stop();
    }
  });
});

describe('a response that comes in the place of a TLS handshake', () => {
  const stage = withGateway();

  it('is none: 502', async () => {
    stage.backend.onConnection((connection) => connection.send(OK));
    const other = await TestGateway.start(stage.backend.url.replace('http:', 'https:'));
    try {
      const client = await other.send(other.head('GET /'));
      expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 502 .*"bad_gateway"/s);
    } finally {
      await other.stop();
    }
  });
});

describe('waiting for a backend connection', () => {
  const stage = withGateway({ backendConnections: 2, backendWaiting: 2 });

  it('is bounded in number: 503', async () => {
    const busy = [stage.gateway.head('GET /1'), stage.gateway.head('GET /2')];
    for (const bytes of busy) await stage.gateway.send(bytes);
    await (await stage.backend.connection(1)).head();
    for (let i = 0; i < 2; i += 1) await stage.gateway.send(stage.gateway.head('GET /waits'));
    await until(() => stage.gateway.proxy.backendLoad.waiting === 2);
    const turnedAway = await stage.gateway.send(stage.gateway.head('GET /5'));
    const response = await turnedAway.until((text) => text.endsWith('}'));
    expect(response).toMatch(/^HTTP\/1\.1 503 .*"overloaded"/s);
    expect(response).toMatch(/\r\nRetry-After: 1\r\n/);
    expect(stage.backend.connections).toHaveLength(2);
  });

  it('ends with the first free connection, and with the client', async () => {
    for (const path of ['/1', '/2']) await stage.gateway.send(stage.gateway.head(`GET ${path}`));
    await (await stage.backend.connection(1)).head();
    const gone = await stage.gateway.send(stage.gateway.head('GET /gone'));
    const patient = await stage.gateway.send(stage.gateway.head('GET /patient'));
    await until(() => stage.gateway.proxy.backendLoad.waiting === 2);
    gone.destroy();
    await until(() => stage.gateway.proxy.backendLoad.waiting === 1);
    const first = await stage.backend.connection(0);
    first.respondToEachHead(OK);
    first.send(OK);
    await patient.until((text) => text.endsWith('ok'));
    expect(stage.backend.received).not.toContain('/gone');
  });
});

describe('the deadline of a request', () => {
  const stage = withGateway({ backendConnections: 2, backendWaiting: 2, backendTimeoutMs: 400 });

  it('passes while it waits for a connection as well: 504, and it is never sent', async () => {
    // Responses that have begun and do not end.
    stage.backend.respond('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok');
    for (const path of ['/1', '/2']) {
      const busy = await stage.gateway.send(stage.gateway.head(`GET ${path}`));
      await busy.until((text) => text.endsWith('ok'));
    }
    const waiting = await stage.gateway.send(stage.gateway.head('GET /3'));
    const response = await waiting.until((text) => text.endsWith('}'));
    expect(response).toMatch(/^HTTP\/1\.1 504 .*"gateway_timeout"/s);
    expect(stage.backend.received).not.toContain('/3');
  });

  it('a backend that does not respond is 504, and its connection is not used again', async () => {
    const client = await stage.gateway.send(stage.gateway.head('GET /slow'));
    expect(await client.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 504 /);
    await (await stage.backend.connection()).ended();
    await stage.gateway.settled();
    stage.backend.respond(OK);
    client.send(stage.gateway.head('GET /next'));
    await client.until((text) => text.endsWith('ok'));
    expect(stage.backend.connections).toHaveLength(2);
  });
});

describe('a connection whose response is complete', () => {
  const stage = withGateway({ backendConnections: 1 });

  it('by the end of the connection is not given to the request that waits', async () => {
    stage.backend.onConnection(async (connection, index) => {
      await connection.head();
      if (index > 0) {
        connection.send(OK);
        return;
      }
      await until(() => stage.gateway.proxy.backendLoad.waiting === 1);
      connection.send('HTTP/1.1 200 OK\r\n\r\nuntil the end');
      connection.end();
    });
    const first = await stage.gateway.send(stage.gateway.head('GET /1'));
    await (await stage.backend.connection()).head();
    const second = await stage.gateway.send(`${stage.gateway.head('POST /2', 'Content-Length: 1')}x`);
    await first.until((text) => text.includes('until the end'));
    expect(await second.head()).toMatch(/^HTTP\/1\.1 200 /);
    expect(stage.backend.connections).toHaveLength(2);
  });
});
