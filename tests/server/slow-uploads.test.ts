import type { RequestListener } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import type { RawPeer } from '../proxy/support/raw-peer.ts';
import { withGateway } from '../proxy/support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const LENGTH = 'Content-Length: 60000';
const CHUNKED = 'Transfer-Encoding: chunked';
/** Sends a byte far more often than a connection may be idle, and far below the rate. */
const EVERY_MS = 20;
const UPLOAD_RATE = { bytesPerSecond: 1000, windowMs: 250 };

/** Reads the body, as an endpoint that takes one does. */
const readsBody: RequestListener = (req, res) => {
  req.on('data', () => {});
  req.on('end', () => res.end('read'));
};
/** Responds before the body, as an endpoint that takes none does. */
const readsNothing: RequestListener = (_req, res) => void res.end('done');

/** Sends the bytes again and again until the connection ends. */
async function drip(client: RawPeer, bytes: string): Promise<string> {
  const timer = setInterval(() => client.send(bytes), EVERY_MS);
  try {
    return await client.ended();
  } finally {
    clearInterval(timer);
  }
}

describe('rule 16: an upload byte by byte that the gateway itself reads', () => {
  const served: { by: RequestListener } = { by: readsBody };
  const stage = withGateway({
    uploadRate: UPLOAD_RATE,
    management: (req, res) => served.by(req, res),
    corsAllowedOrigins: ['https://app.example'],
  });

  it.each([
    ['with a length', LENGTH, 'x'],
    ['in chunks', CHUNKED, '1\r\nx\r\n'],
    ['in chunk extensions', CHUNKED, '1;a=b\r\nx\r\n'],
  ])('is 408 at a management endpoint that reads it, %s', async (_how, line, bytes) => {
    served.by = readsBody;
    const { gateway } = stage;
    const client = await gateway.send(gateway.head('POST /rate-limit/create', line));
    expect(await drip(client, bytes)).toMatch(/^HTTP\/1\.1 408 .*Connection: close.*"request_timeout"/s);
    expect(gateway.proxy.counters.tooSlow.upload).toBe(1);
  });

  it.each([
    ['with a length', LENGTH, 'x'],
    ['in chunks', CHUNKED, '1\r\nx\r\n'],
    ['in trailers', CHUNKED, 'a: b\r\n'],
  ])(
    'ends the connection of a management endpoint that has responded before it, %s',
    async (_how, line, bytes) => {
      served.by = readsNothing;
      const client = await stage.gateway.send(stage.gateway.head('GET /rate-limit/create', line));
      if (bytes.startsWith('a')) client.send('0\r\n');
      expect(await drip(client, bytes)).toMatch(/^HTTP\/1\.1 200 .*done/s);
    },
  );

  it('ends the connection of a proxied request that was rejected before it', async () => {
    const client = await stage.gateway.send(`POST / HTTP/1.1\r\nHost: a\r\n${LENGTH}\r\n\r\n`);
    expect(await drip(client, 'x')).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('ends the connection of one to which the backend has responded before it', async () => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(stage.gateway.head('POST /', LENGTH));
    expect(await drip(client, 'x')).toMatch(/^HTTP\/1\.1 200 .*ok/s);
  });

  it('ends the connection of a preflight', async () => {
    const lines = ['Host: a', 'Origin: https://app.example', 'Access-Control-Request-Method: PUT', LENGTH];
    const client = await stage.gateway.send(`OPTIONS / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    expect(await drip(client, 'x')).toMatch(/^HTTP\/1\.1 204 /);
  });
});

describe('rule 16: what is no slow upload', () => {
  const idle: RequestListener = () => {};
  const stage = withGateway({ uploadRate: UPLOAD_RATE, management: idle, rateWindowMs: 600_000 });

  /** Long enough for three looks: uploads that bring nothing are ended at every second one. */
  async function lookedThrice(): Promise<void> {
    for (let look = 0; look < 2; look += 1) {
      const client = await stage.gateway.send(`POST / HTTP/1.1\r\nHost: a\r\n${LENGTH}\r\n\r\n`);
      await client.ended();
    }
  }

  it('is a body that nobody has begun to read', async () => {
    const { gateway } = stage;
    const client = await gateway.send(gateway.head('POST /rate-limit/create', LENGTH));
    await lookedThrice();
    expect(client.ending).toBe('open');
  });

  it('is a proxied body, which has a watch that knows of the backend', async () => {
    const { gateway } = stage;
    const client = await gateway.send(`${gateway.head('POST /', LENGTH)}x`);
    await lookedThrice();
    expect(client.ending).toBe('open');
  });

  it('is a request that waits for its turn on the connection', async () => {
    const { gateway } = stage;
    const client = await gateway.send(
      gateway.head('GET /') + gateway.head('POST /rate-limit/create', LENGTH),
    );
    await lookedThrice();
    expect(client.ending).toBe('open');
  });

  it('is a connection that is idle after a complete request', async () => {
    const { gateway, backend } = stage;
    backend.respond(OK);
    const client = await gateway.send(`${gateway.head('POST /', 'Content-Length: 1')}x`);
    await client.until((text) => text.endsWith('ok'));
    await lookedThrice();
    expect(client.ending).toBe('open');
  });
});

describe('rule 16: an upload to management that is fast enough', () => {
  const stage = withGateway({ uploadRate: UPLOAD_RATE, management: readsBody });

  it('may take as long as it needs', async () => {
    const { gateway } = stage;
    const client = await gateway.send(gateway.head('POST /rate-limit/create', CHUNKED));
    for (let look = 0; look < 2; look += 1) {
      const slow = await gateway.send(gateway.head('POST /rate-limit/create', LENGTH));
      while (slow.ending === 'open') {
        client.send(`1000\r\n${'x'.repeat(0x1000)}\r\n`);
        await slow.staysOpen(EVERY_MS);
      }
    }
    client.send('0\r\n\r\n');
    await client.until((text) => text.includes('read'));
  });
});
