import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { unlessStalled } from './support/unless-stalled.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('slow heads', () => {
  const stage = withGateway({ timeouts: { headMs: 200, idleMs: 30_000, keepAliveMs: 30_000 } });

  it('a head that does not arrive is 408', async () => {
    const client = await stage.gateway.send('GET / HTTP/1.1\r\nHost: a\r\n');
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 408 .*"request_timeout"/s);
  });

  it('a head that arrives byte by byte is 408', async () => {
    const client = await stage.gateway.send('GET / HTTP/1.1\r\n');
    const drip = setInterval(() => client.send('a'), 50);
    try {
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 408 /);
    } finally {
      clearInterval(drip);
    }
  });
});

describe('a connection that has not carried a byte', () => {
  const stage = withGateway({ timeouts: { headMs: 100 } });

  it('is closed without a response', async () => {
    const client = await stage.gateway.connect();
    expect(await client.ended()).toBe('');
    expect(client.ending).toBe('fin');
  });
});

const CLIENT_IDLE_MS = 400;
const timeouts = { headMs: 200, idleMs: CLIENT_IDLE_MS, keepAliveMs: CLIENT_IDLE_MS };

describe('slow peers', () => {
  // A machine that stands still for a moment must not make a head late.
  const stage = withGateway({
    timeouts: { ...timeouts, headMs: 60_000 },
    backendTimeoutMs: 60_000,
    backendIdleMs: 60_000,
  });

  it('a connection that carries no byte is closed', async () => {
    const client = await stage.gateway.connect();
    await client.ended();
  });

  it('a body that does not arrive is 408, and its backend request ends unfinished', async () => {
    const client = await stage.gateway.send(`${stage.gateway.head('POST /', 'Content-Length: 10')}hello`);
    const backend = await stage.backend.connection();
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 408 .*"request_timeout"/s);
    expect(await backend.ended()).toMatch(/\r\n\r\nhello$/);
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
    expect(stage.gateway.observed).toMatchObject([
      { status: 408, outcome: 'invalid_request', errorCode: 'request_timeout' },
    ]);
    expect(client.text).toMatch(/\r\nX-RateLimit-Remaining: .*\r\nX-Request-Id: /s);
  });

  it('a body that makes progress may take longer than any of the timeouts', () =>
    unlessStalled(CLIENT_IDLE_MS, async () => {
      const connections = stage.backend.connections.length;
      const idle = await stage.gateway.connect();
      const client = await stage.gateway.send(stage.gateway.head('POST /', 'Transfer-Encoding: chunked'));
      const backend = await stage.backend.connection(connections);
      // The end of the idle connection says that the idle timeout is over.
      while (idle.ending === 'open') {
        const arrived = backend.length;
        client.send('1\r\nx\r\n');
        await backend.until(() => backend.length > arrived);
      }
      client.send('0\r\n\r\n');
      await backend.until((text) => text.endsWith('0\r\n\r\n'));
      backend.send(OK);
      expect(await client.until((text) => text.endsWith('ok'))).toMatch(/^HTTP\/1\.1 200 /);
    }));

  it('a client that does not read is cut, and its backend request with it', async () => {
    const big = Buffer.alloc(32 * 1024 * 1024, 'x');
    stage.backend.respond(
      Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${big.length}\r\n\r\n`), big]),
    );
    const client = await stage.gateway.connect();
    client.socket.pause();
    client.send(stage.gateway.head('GET /'));
    const backend = await stage.backend.connection();
    await until(() => backend.socket.destroyed || backend.ending !== 'open');
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
  });

  it('a client that reads slowly is served', () =>
    unlessStalled(CLIENT_IDLE_MS, async () => {
      const big = Buffer.alloc(8 * 1024 * 1024, 'x');
      stage.backend.respond(
        Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${big.length}\r\n\r\n`), big]),
      );
      const client = await stage.gateway.connect();
      client.readSlowly(big.length / 15, 80);
      client.send(stage.gateway.head('GET /'));
      await client.ended();
      expect(client.length).toBeGreaterThan(big.length);
    }));

  it('a backend may take longer to respond than a client may be idle', async () => {
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    const backend = await stage.backend.connection();
    const idle = await stage.gateway.connect();
    await idle.ended();
    backend.send(OK);
    await client.until((text) => text.endsWith('ok'));
  });

  it('a backend may pause in mid-body for longer than a client', async () => {
    stage.backend.respond('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.head();
    const backend = await stage.backend.connection();
    const idle = await stage.gateway.connect();
    await idle.ended();
    backend.send('2\r\nok\r\n0\r\n\r\n');
    await client.until((text) => text.endsWith('0\r\n\r\n'));
  });

  it('an unused connection is kept for a while, then closed', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok'));
    // Longer than a connection that has not had a request yet.
    const idle = await stage.gateway.connect();
    await idle.ended();
    expect(client.ending).toBe('open');
    await client.ended();
    expect(client.ending).toBe('fin');
  });

  it('a connection is not kept by line ends', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok'));
    const drip = setInterval(() => client.send('\r\n'), CLIENT_IDLE_MS / 8);
    try {
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 .*ok$/s);
    } finally {
      clearInterval(drip);
    }
  });

  it('a connection that was unused for long has the time of one in use again', async () => {
    // The other request may come over a new connection.
    stage.backend.onConnection((connection) => {
      connection.socket.on('data', (bytes: Buffer) => {
        if (bytes.includes('GET')) connection.send(OK);
      });
    });
    const client = await stage.gateway.send(stage.gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok'));
    const idle = await stage.gateway.connect();
    await idle.ended();
    expect(client.ending).toBe('open');
    client.send(stage.gateway.head('POST /', 'Content-Length: 10'));
    expect(await client.ended()).toMatch(/ok.*HTTP\/1\.1 408 .*"request_timeout"/s);
  });
});

describe('slow backends', () => {
  const stage = withGateway({ timeouts, backendTimeoutMs: 1000, backendIdleMs: 1000 });

  it('a backend that does not read a body is 504', async () => {
    stage.backend.onConnection((connection) => connection.socket.pause());
    const client = await stage.gateway.send(stage.gateway.head('POST /', 'Content-Length: 100000000'));
    const pump = setInterval(() => {
      if (client.socket.writableLength < 1_000_000) client.send(Buffer.alloc(1_000_000));
    }, 5);
    try {
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 504 .*"gateway_timeout"/s);
    } finally {
      clearInterval(pump);
    }
  });
});
