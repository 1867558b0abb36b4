import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { unlessStalled } from './support/unless-stalled.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const MUCH = Buffer.alloc(32 * 1024 * 1024, 'x');
/** The time over which a rate is measured, and some of which a busy machine may take for itself. Milliseconds. */
const WINDOW_MS = 500;

/** How a response that was cut is observed. The backend did not fail. */
const BLAMED_ON_CLIENT = {
  status: 200,
  outcome: 'client_gone',
  errorCode: 'request_timeout',
  failure: undefined,
};

/** Sends the bytes again and again until the connection ends. */
async function drip(client: RawPeer, bytes: string, everyMs: number): Promise<void> {
  const timer = setInterval(() => client.send(bytes), everyMs);
  try {
    await client.ended();
  } finally {
    clearInterval(timer);
  }
}

describe('the minimum rate of an upload', () => {
  const stage = withGateway({ rateWindowMs: WINDOW_MS, backendTimeoutMs: 60_000, backendConnections: 2 });

  it.each([
    ['with a length', 'Content-Length: 1000', 'x'],
    ['in chunks', 'Transfer-Encoding: chunked', '1\r\nx\r\n'],
  ])('ends one %s that comes byte by byte: 408, and its connection is free', async (_how, line, bytes) => {
    const { gateway, backend } = stage;
    const client = await gateway.send(gateway.head('POST /', line));
    await drip(client, bytes, 30);
    expect(client.text).toMatch(/^HTTP\/1\.1 408 .*Connection: close.*"request_timeout"/s);
    await (await backend.connection()).ended();
    await gateway.settled();
    expect(gateway.proxy.counters.tooSlow).toEqual({ upload: 1, download: 0 });
  });

  it('is no credit for later: one that begins fast and then drips is ended', async () => {
    const { gateway } = stage;
    const client = await gateway.send(
      `${gateway.head('POST /', 'Content-Length: 100000')}${'x'.repeat(50_000)}`,
    );
    await drip(client, 'x', 30);
    expect(client.text).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('lets one pass that is faster, however long it takes', async () => {
    const { gateway, backend } = stage;
    const client = await gateway.send(gateway.head('POST /', 'Transfer-Encoding: chunked'));
    const connection = await backend.connection();
    // Each upload that brings nothing is ended after a window.
    for (let window = 0; window < 3; window += 1) {
      const slow = await gateway.send(gateway.head('POST /', 'Content-Length: 1000'));
      while (slow.ending === 'open') {
        const arrived = connection.length;
        client.send(`1000\r\n${'x'.repeat(0x1000)}\r\n`);
        await until(() => connection.length > arrived);
      }
    }
    client.send('0\r\n\r\n');
    await connection.until((text) => text.endsWith('0\r\n\r\n'));
    connection.send(OK);
    await client.until((text) => text.endsWith('ok'));
  });

  it('ends a response that has begun, which is no failure of the backend', async () => {
    const { gateway, backend } = stage;
    backend.respond('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun');
    const client = await gateway.send(gateway.head('POST /', 'Transfer-Encoding: chunked'));
    const fast = setInterval(() => client.send(`1000\r\n${'x'.repeat(0x1000)}\r\n`), 30);
    await client.until((text) => text.endsWith('begun')).finally(() => clearInterval(fast));
    await drip(client, '1\r\nx\r\n', 30);
    await until(() => gateway.observed.length === 1);
    expect(gateway.observed).toMatchObject([BLAMED_ON_CLIENT]);
  });

  it('keeps four slow uploads of one key from stopping the others', async () => {
    const { gateway, backend } = stage;
    backend.onConnection((connection) => {
      connection.socket.on('data', (chunk: Buffer) => {
        if (chunk.toString('latin1').startsWith('GET')) connection.send(OK);
      });
    });
    const slow = await Promise.all(
      Array.from({ length: 4 }, () => gateway.send(gateway.head('POST /', 'Content-Length: 1000'))),
    );
    await until(() => gateway.proxy.backendLoad.waiting === 2);
    const drips = slow.map((client) => drip(client, 'x', 30));
    const other = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /'));
    await other.until((text) => text.endsWith('ok'));
    await Promise.all(drips);
  });
});

describe('the minimum rate of an upload, where the backend stands still', () => {
  const stage = withGateway({ rateWindowMs: WINDOW_MS, backendTimeoutMs: 2000 });

  it('does not blame a client whose body the backend does not take: 504', async () => {
    const { gateway, backend } = stage;
    backend.onConnection((connection) => connection.socket.pause());
    const client = await gateway.send(gateway.head('POST /', `Content-Length: ${MUCH.length}`));
    client.send(MUCH);
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 504 .*"gateway_timeout"/s);
  });
});

describe('the minimum rate at which a response is taken', () => {
  const stage = withGateway({
    rateWindowMs: WINDOW_MS,
    timeouts: { idleMs: 600_000, headMs: 600_000, keepAliveMs: 600_000 },
    backendIdleMs: 600_000,
  });

  it('ends a response that its client does not read, and frees the connection', async () => {
    const { gateway, backend } = stage;
    backend.respond(
      Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${MUCH.length}\r\n\r\n`), MUCH]),
    );
    const client = await gateway.connect();
    client.socket.pause();
    client.send(gateway.head('GET /'));
    await until(() => gateway.proxy.counters.tooSlow.download === 1);
    await gateway.settled();
    await until(() => gateway.recorded.length === 1);
    expect(gateway.recorded).toMatchObject([{ successful: false }]);
    expect(gateway.observed).toMatchObject([BLAMED_ON_CLIENT]);
  });

  it('ends it by a reset, where an end would look like that of the body', async () => {
    const { gateway, backend } = stage;
    backend.respond(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n'), MUCH]));
    const client = await gateway.connect();
    client.socket.pause();
    client.send(gateway.head('GET /').replace('HTTP/1.1', 'HTTP/1.0'));
    await until(() => gateway.proxy.counters.tooSlow.download === 1);
    client.socket.resume();
    await client.ended();
    expect(client.ending).toBe('reset');
  });

  it('does not apply to a stream that is idle', async () => {
    const { gateway, backend } = stage;
    backend.respond('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n');
    const client = await gateway.send(gateway.head('GET /'));
    await client.until((text) => text.endsWith('ok\r\n'));
    // One that is not read is ended after a window.
    backend.respond(
      Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${MUCH.length}\r\n\r\n`), MUCH]),
    );
    const other = await gateway.connect();
    other.socket.pause();
    other.send(gateway.head('GET /'));
    await until(() => gateway.proxy.counters.tooSlow.download === 1);
    expect(client.ending).toBe('open');
  });

  it('lets a client take its time that reads faster', () =>
    unlessStalled(WINDOW_MS, async () => {
      const { gateway, backend } = stage;
      const tooSlow = gateway.proxy.counters.tooSlow.download;
      backend.respond(
        Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${MUCH.length}\r\n\r\n`), MUCH]),
      );
      const client = await gateway.connect();
      client.readSlowly(MUCH.length / 40, 30);
      client.send(gateway.head('GET /'));
      await until(() => client.length > MUCH.length || client.ending !== 'open');
      expect(client.length).toBeGreaterThan(MUCH.length);
      expect(gateway.proxy.counters.tooSlow.download).toBe(tooSlow);
    }));
});
