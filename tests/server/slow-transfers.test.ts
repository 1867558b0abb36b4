import type { RequestListener } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import type { RawPeer } from '../proxy/support/raw-peer.ts';
import { unlessStalled } from '../proxy/support/unless-stalled.ts';
import { withGateway } from '../proxy/support/with-gateway.ts';
import { until } from '../support/until.ts';

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

describe('an upload byte by byte that the gateway itself reads', () => {
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

describe('what is no slow upload', () => {
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

describe('an upload to management that is fast enough', () => {
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

/** More than the system keeps for a connection. */
const LARGE = Buffer.alloc(12 * 1024 * 1024, 'x');

/** Responds at once with all of it. */
const sendsMuch: RequestListener = (_req, res) => void res.end(LARGE);
/** Writes as much as the client takes, as an export does. */
const streamsMuch: RequestListener = (_req, res) => {
  const write = () => {
    while (res.write(LARGE.subarray(0, 64 * 1024)));
  };
  res.on('drain', write);
  write();
};

describe('a client that does not read a response', () => {
  const served: { by: RequestListener } = { by: sendsMuch };
  const stage = withGateway({
    downloadRate: { bytesPerSecond: 1000, windowMs: 250 },
    management: (req, res) => served.by(req, res),
    timeouts: { idleMs: 600_000 },
  });

  async function unread(bytes: string): Promise<RawPeer> {
    const client = await stage.gateway.connect();
    client.socket.pause();
    client.send(bytes);
    return client;
  }

  function isCutOff(): Promise<void> {
    return until(() => stage.gateway.proxy.counters.tooSlow.download === 1);
  }

  it.each([
    ['that was made as a whole', sendsMuch],
    ['that is made as fast as it is taken', streamsMuch],
  ])('of management is cut off, one %s', async (_how, by) => {
    served.by = by;
    const client = await unread(stage.gateway.head('GET /rate-limit/all'));
    await isCutOff();
    client.socket.resume();
    expect((await client.ended()).length).toBeLessThan(LARGE.length);
  });

  it('is cut off before the requests behind it are served', async () => {
    served.by = sendsMuch;
    const client = await unread(stage.gateway.head('GET /rate-limit/all').repeat(40));
    await isCutOff();
    client.socket.resume();
    expect((await client.ended()).split('HTTP/1.1 200')).toHaveLength(2);
  });

  it('is cut off when it goes on with requests that are rejected', async () => {
    const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
    const client = await unread(request);
    const flood = setInterval(() => client.send(request.repeat(5000)), EVERY_MS);
    try {
      await isCutOff();
    } finally {
      clearInterval(flood);
    }
  });
});

describe('a client that takes responses to pipelined requests below the rate', () => {
  const stage = withGateway({
    // More than any client takes.
    downloadRate: { bytesPerSecond: 1_000_000_000_000, windowMs: 250 },
    management: (_req, res) => void res.end(LARGE.subarray(0, 256 * 1024)),
  });

  it('is cut off although another response is due at each look', async () => {
    const { gateway } = stage;
    const client = await gateway.connect();
    client.readSlowly(256 * 1024, 20);
    client.send(gateway.head('GET /rate-limit/all').repeat(500));
    await until(() => gateway.proxy.counters.tooSlow.download === 1);
    expect((await client.ended()).split('HTTP/1.1 200').length).toBeLessThan(500);
  });
});

describe('what is no slow download', () => {
  const WINDOW_MS = 2000;
  const served: { by: RequestListener } = { by: sendsMuch };
  const stage = withGateway({
    downloadRate: { bytesPerSecond: 1000, windowMs: WINDOW_MS },
    management: (req, res) => served.by(req, res),
  });

  it('is one large write that a client takes at its pace', () =>
    unlessStalled(WINDOW_MS, async () => {
      served.by = sendsMuch;
      const { gateway } = stage;
      const tooSlow = gateway.proxy.counters.tooSlow.download;
      const client = await gateway.connect();
      client.readSlowly(512 * 1024, 250);
      client.send(gateway.head('GET /rate-limit/all'));
      await until(() => client.length > LARGE.length || client.ending !== 'open');
      expect(client.length).toBeGreaterThan(LARGE.length);
      expect(gateway.proxy.counters.tooSlow.download).toBe(tooSlow);
    }));

  it('is an export that takes long to make, whose client takes all that there is', async () => {
    served.by = (req, res) => {
      if (req.url === '/rate-limit/all') sendsMuch(req, res);
      else res.write('first row');
    };
    const { gateway } = stage;
    const client = await gateway.send(gateway.head('GET /rate-limit/export'));
    const slow = await gateway.connect();
    slow.socket.pause();
    slow.send(gateway.head('GET /rate-limit/all'));
    await until(() => gateway.proxy.counters.tooSlow.download === 1);
    expect(client.ending).toBe('open');
  });
});
