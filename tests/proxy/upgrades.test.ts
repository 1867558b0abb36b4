import { describe, expect, it } from '@jest/globals';
import { until, untilAtRest } from '../support/until.ts';
import { plan } from './support/gateway.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { unlessStalled } from './support/unless-stalled.ts';
import { MANAGEMENT_PORTS, type Stage, withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const ASKS = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: abc',
  'Sec-WebSocket-Version: 13',
];
const SWITCHES =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: xyz\r\nX-RateLimit-Limit: 1\r\n\r\n';

/** A tunnel. */
async function openOn(stage: Stage): Promise<{ readonly client: RawPeer; readonly backend: RawPeer }> {
  stage.backend.respond(SWITCHES);
  const index = stage.backend.connections.length;
  const client = await stage.gateway.send(stage.gateway.head('GET /chat?x', ...ASKS));
  await client.until((text) => text.includes('\r\n\r\n'));
  if (!client.text.startsWith('HTTP/1.1 101 ')) throw new Error(`not upgraded: ${client.text}`);
  return { client, backend: await stage.backend.connection(index) };
}

const SOON_MS = 1500;

/** The same, with a key that expires soon: later where the key has expired before it was read, as on a machine that stalls. */
async function openExpiring(stage: Stage): ReturnType<typeof openOn> {
  for (let ms = SOON_MS; ; ms *= 2) {
    await stage.gateway.change({ expiresAtMs: Date.now() + ms });
    const opened = await openOn(stage).catch((error: unknown) => {
      if (ms > 20_000) throw error;
    });
    if (opened !== undefined) return opened;
  }
}

describe.each(MANAGEMENT_PORTS)('upgrades, %s', (_where, settings) => {
  const shutdownDrainMs = 1000;
  const stage = withGateway({ ...settings, shutdownDrainMs });

  const open = () => openOn(stage);

  it('to WebSocket pass authentication and limit, and carry bytes both ways', async () => {
    const { client, backend } = await open();
    expect(backend.text).toMatch(/^GET \/chat\?x HTTP\/1\.1\r\n/);
    expect(backend.text).toMatch(/\r\nconnection: upgrade\r\nupgrade: websocket\r\n/);
    expect(backend.text).toContain('\r\nSec-WebSocket-Key: abc\r\n');
    expect(backend.text).toContain(`\r\nx-api-key: ${stage.gateway.secret}\r\n`);
    expect(client.text).toMatch(
      /^HTTP\/1\.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n/,
    );
    expect(client.text).toContain('\r\nSec-WebSocket-Accept: xyz\r\n');
    expect(client.text).toContain('\r\nX-RateLimit-Limit: 1000000\r\n');
    client.send('\x81\x01a');
    await backend.until((text) => text.endsWith('\x81\x01a'));
    backend.send('\x81\x01b');
    await client.until((text) => text.endsWith('\r\n\r\n\x81\x01b'));
    client.send('c');
    await backend.until((text) => text.endsWith('c'));
    expect(stage.gateway.proxy.backendLoad).toMatchObject({ busy: 0, tunnels: 1 });
    expect(stage.gateway.recorded).toMatchObject([{ endpoint: '/chat', successful: true }]);
    expect(stage.gateway.observed).toMatchObject([{ status: 101, outcome: 'forwarded' }]);
  });

  it('count as one request each, and are rejected over the limit', async () => {
    await stage.gateway.change({ plan: plan(1) });
    await open();
    const limited = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    const response = await limited.ended();
    expect(response).toMatch(/^HTTP\/1\.1 429 .*"remaining":0/s);
    expect(response).toMatch(/\r\nConnection: close\r\n/);
    expect(stage.backend.connections).toHaveLength(1);
    await until(() => stage.gateway.recorded.length === 2);
  });

  it('without a key are 401', async () => {
    const client = await stage.gateway.send(`GET / HTTP/1.1\r\nHost: a\r\n${ASKS.join('\r\n')}\r\n\r\n`);
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 401 .*"missing_api_key"/s);
    expect(stage.backend.connections).toHaveLength(0);
  });

  it.each([
    ['Content-Length', ['Content-Length: 3'], 'abc'],
    ['Transfer-Encoding', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'],
  ] as const)('with %s are 400', async (_what, lines, body) => {
    for (const method of ['GET', 'POST']) {
      const client = await stage.gateway.send(stage.gateway.head(`${method} /`, ...ASKS, ...lines) + body);
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 400 /);
    }
    expect(stage.backend.received).toBe('');
  });

  it('with another method than GET are 400', async () => {
    const client = await stage.gateway.send(stage.gateway.head('POST /', ...ASKS));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 400 /);
    expect(stage.backend.received).toBe('');
  });

  it('with HEAD are 400 without a body', async () => {
    const client = await stage.gateway.send(stage.gateway.head('HEAD /', ...ASKS));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 400 .*\r\nContent-Length: [1-9]\d*\r\n.*\r\n\r\n$/s);
  });

  it.each(['h2c', 'websocket, h2c', 'TLS/1.0'])(
    'to %s are no upgrades: the field is dropped',
    async (protocol) => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(
        `${stage.gateway.head('POST /', 'Connection: Upgrade, HTTP2-Settings', `Upgrade: ${protocol}`, 'HTTP2-Settings: AAMAAABk', 'Content-Length: 5')}hello`,
      );
      expect(await client.until((text) => text.endsWith('ok'))).toMatch(/^HTTP\/1\.1 200 /);
      expect(stage.backend.received).not.toMatch(/upgrade|http2-settings/i);
      expect(stage.backend.received).toMatch(/\r\n\r\nhello$/);
    },
  );

  it.each([
    [],
    ['Proxy-Connection: Upgrade'],
    ['Connection: x-upgrade, keep-alive', 'Proxy-Connection: Upgrade'],
  ])('without the option in Connection are none (%j)', async (...lines) => {
    stage.backend.respond(OK);
    const client = await stage.gateway.send(
      `${stage.gateway.head('POST /', ...lines, 'Upgrade: websocket', 'Content-Length: 5')}hello`,
    );
    expect(await client.until((text) => text.endsWith('ok'))).toMatch(/^HTTP\/1\.1 200 /);
    expect(stage.backend.received).not.toMatch(/upgrade/i);
    expect(stage.backend.received).toMatch(/\r\n\r\nhello$/);
  });

  describe.each([
    ['h2c', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']],
    ['websocket by Proxy-Connection', ['Proxy-Connection: Upgrade', 'Upgrade: websocket']],
  ] as const)('that are declined (%s)', (_what, offer) => {
    const first = (body: string) =>
      body === ''
        ? stage.gateway.head('GET /1', ...offer)
        : stage.gateway.head('POST /1', ...offer, `Content-Length: ${body.length}`) + body;

    it('keep the connection for what comes after the response', async () => {
      stage.backend.respond(OK);
      const client = await stage.gateway.send(first(''));
      await client.until((text) => text.endsWith('ok'));
      client.send(stage.gateway.head('GET /2'));
      await client.until((text) => text.split('\r\n\r\nok').length === 3);
    });

    // Node's parser stops behind such a request, and what it has not read of that read is lost.
    it.each(['', 'hello'])(
      'end it when more came with them, of which a part is lost (body: %j)',
      async (body) => {
        const smuggled = stage.gateway.head('GET /smuggled');
        const client = await stage.gateway.send(
          first(body) + stage.gateway.head('POST /2', `Content-Length: ${smuggled.length}`),
        );
        const backend = await stage.backend.connection();
        await backend.head();
        client.send(smuggled);
        await stage.gateway.catchUp();
        expect(client.ending).toBe('open');
        backend.send(OK);
        expect((await client.ended()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
        expect(stage.backend.received).not.toMatch(/smuggled|\/2/);
      },
    );

    it('end it when the rest of their body may have brought more', async () => {
      const smuggled = stage.gateway.head('GET /smuggled');
      const client = await stage.gateway.send(first('hello').slice(0, -5));
      const backend = await stage.backend.connection();
      client.send(`hello${stage.gateway.head('POST /2', `Content-Length: ${smuggled.length}`)}`);
      await backend.until((text) => text.endsWith('hello'));
      client.send(smuggled);
      await stage.gateway.catchUp();
      expect(client.ending).toBe('open');
      backend.send(OK);
      expect((await client.ended()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
      expect(stage.backend.received).not.toMatch(/smuggled|\/2/);
    });
  });

  it.each(['/a/../b', '/a%00'])('of %s are rejected like requests', async (target) => {
    const client = await stage.gateway.send(stage.gateway.head(`GET ${target}`, ...ASKS));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 40[04] /);
    expect(stage.backend.received).toBe('');
  });

  it('that the backend rejects get its response', async () => {
    stage.backend.respond('HTTP/1.1 403 Forbidden\r\nX-Why: because\r\nContent-Length: 4\r\n\r\nnope');
    const client = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    const response = await client.ended();
    expect(response).toMatch(/^HTTP\/1\.1 403 Forbidden\r\nX-Why: because\r\n.*nope$/s);
    await until(() => stage.gateway.recorded.length === 1);
    expect(stage.gateway.recorded).toMatchObject([{ successful: false }]);
    await (await stage.backend.connection()).ended();
  });

  it('that the backend rejects at length get the whole response', async () => {
    const body = 'x'.repeat(5_000_000);
    stage.backend.respond(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const client = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    await client.ended();
    expect(client.text.endsWith(body)).toBe(true);
  });

  it.each([
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  ])('that the backend responds with another protocol are 502: %j', async (bytes) => {
    stage.backend.respond(bytes);
    const client = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 502 /);
    await (await stage.backend.connection()).ended();
  });

  it('use a dedicated connection, which is never used for another request', async () => {
    stage.backend.respond(OK);
    const plain = await stage.gateway.send(stage.gateway.head('GET /1'));
    await plain.until((text) => text.endsWith('ok'));
    const rejected = await stage.gateway.send(stage.gateway.head('GET /2', ...ASKS));
    await rejected.ended();
    plain.send(stage.gateway.head('GET /3'));
    await plain.until((text) => text.split('\r\n\r\nok').length === 3);
    expect(stage.backend.connections.map(({ text }) => text.match(/GET \/\d/g))).toEqual([
      ['GET /1', 'GET /3'],
      ['GET /2'],
    ]);
  });

  it('forward bytes that the client sent after its head', async () => {
    stage.backend.respond(SWITCHES);
    await stage.gateway.send(`${stage.gateway.head('GET /chat', ...ASKS)}early`);
    await (await stage.backend.connection()).until((text) => text.endsWith('\r\n\r\nearly'));
  });

  it('keep bytes that came before the switch from a backend that declines it', async () => {
    const smuggled = stage.gateway.head('GET /smuggled');
    const client = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS) + smuggled);
    const backend = await stage.backend.connection();
    await backend.head();
    client.send(smuggled);
    await stage.gateway.catchUp();
    backend.send('HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope');
    expect((await client.ended()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 403']);
    await backend.ended();
    expect(stage.backend.received).not.toContain('smuggled');
  });

  it('forward bytes that the backend sent after its head', async () => {
    stage.backend.respond(`${SWITCHES}early`);
    const client = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    await client.until((text) => text.endsWith('\r\n\r\nearly'));
  });

  it('end with either side, and what was sent last arrives', async () => {
    const one = await open();
    one.backend.send('bye');
    one.backend.end();
    expect(await one.client.ended()).toMatch(/bye$/);
    const two = await open();
    two.client.send('bye');
    two.client.end();
    expect(await two.backend.ended()).toMatch(/bye$/);
    const three = await open();
    three.client.reset();
    await three.backend.ended();
    const four = await open();
    four.backend.reset();
    await four.client.ended();
    one.client.destroy();
    two.backend.destroy();
    await until(() => stage.gateway.proxy.backendLoad.tunnels === 0);
  });

  it('are held back at the sender when the receiver is slow', async () => {
    const { client, backend } = await open();
    client.socket.pause();
    const sentBytes = 64 * 1024 * 1024;
    for (let sent = 0; sent < 64; sent += 1) backend.send(Buffer.alloc(sentBytes / 64, 'x'));
    expect(await untilAtRest(() => backend.socket.writableLength, sentBytes)).toBeGreaterThan(sentBytes / 2);
  });

  it('are closed when their key is disabled or deleted, and not for another change', async () => {
    const first = await open();
    const keepAlive = setInterval(() => first.backend.send('.'), 50);
    try {
      await stage.gateway.change({ plan: plan(5) });
      const arrived = first.client.length;
      await first.client.until(() => first.client.length > arrived + 2);
      await stage.gateway.change({ enabled: false });
      await first.client.ended();
      await first.backend.ended();
      await stage.gateway.change({ enabled: true });
      const second = await open();
      await stage.gateway.delete();
      await second.client.ended();
    } finally {
      clearInterval(keepAlive);
    }
  });

  it.each(['disabled', 'deleted'] as const)(
    'are closed when their key was %s before the backend switched',
    async (change) => {
      const { gateway, backend } = stage;
      gateway.keyStore.hidesOutdated = true;
      const client = await gateway.send(gateway.head('GET /chat', ...ASKS));
      const upstream = await backend.connection();
      await upstream.head();
      if (change === 'disabled') await gateway.change({ enabled: false });
      else await gateway.delete();
      upstream.send(SWITCHES);
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 101 /);
      await upstream.ended();
    },
  );

  it('are closed when their key expires', async () => {
    const { client, backend } = await openExpiring(stage);
    const keepAlive = setInterval(() => backend.send('.'), 50);
    try {
      await client.ended();
    } finally {
      clearInterval(keepAlive);
    }
  });

  it('are closed when their key expires, also while the record store is down', async () => {
    const { client, backend } = await openExpiring(stage);
    const keepAlive = setInterval(() => backend.send('.'), 50);
    stage.gateway.keyStore.isDown = true;
    try {
      await client.ended();
    } finally {
      clearInterval(keepAlive);
    }
  });

  it('are closed when their key expires, also after its expiry was moved', () =>
    unlessStalled(SOON_MS, async () => {
      await stage.gateway.change({ expiresAtMs: Date.now() + 900_000 });
      const { client, backend } = await open();
      await stage.gateway.change({ expiresAtMs: Date.now() + 600_000 });
      await stage.gateway.change({ expiresAtMs: Date.now() + 300 });
      const keepAlive = setInterval(() => backend.send('.'), 50);
      try {
        await client.ended();
        const other = await openExpiring(stage);
        await stage.gateway.change({ expiresAtMs: Date.now() + 2500 });
        await other.client.ended();
        expect(Date.now()).toBeGreaterThanOrEqual(
          stage.gateway.keyStore.snapshots.get(stage.gateway.secret)?.expiresAtMs ?? 0,
        );
      } finally {
        clearInterval(keepAlive);
      }
    }));

  it('are closed when the gateway stops, after the time to finish', async () => {
    const { client, backend } = await open();
    const keepAlive = setInterval(() => backend.send('.'), 50);
    try {
      const beganAt = performance.now();
      const closed = stage.gateway.close();
      await client.ended();
      // A timer may be early by less than a millisecond.
      expect(performance.now() - beganAt).toBeGreaterThan(shutdownDrainMs - 1);
      await closed;
    } finally {
      clearInterval(keepAlive);
    }
  });
});

describe('upgrades that take too long', () => {
  const upgradeIdleMs = 400;
  const stage = withGateway({ backendTimeoutMs: 1000, upgradeIdleMs, timeouts: { idleMs: 300 } });

  it('that the backend rejects at length end when the client does not read', async () => {
    const body = 'x'.repeat(32 * 1024 * 1024);
    stage.backend.respond(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const client = await stage.gateway.connect();
    client.socket.pause();
    client.send(stage.gateway.head('GET /chat', ...ASKS));
    const backend = await stage.backend.connection();
    await until(() => backend.ending !== 'open');
    await until(() => stage.gateway.recorded.length === 1);
  });

  it('without a backend are 502, without its response 504', async () => {
    const client = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 504 .*"gateway_timeout"/s);
    await stage.backend.stop();
    const other = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    expect(await other.ended()).toMatch(/^HTTP\/1\.1 502 .*"bad_gateway"/s);
  });

  it('that carry nothing are closed; those that do are kept', () =>
    unlessStalled(upgradeIdleMs, async () => {
      const { client, backend } = await openOn(stage);
      const idle = await openOn(stage);
      while (idle.client.ending === 'open') {
        const arrived = client.length;
        backend.send('.');
        await client.until(() => client.length > arrived);
      }
      expect(client.ending).toBe('open');
      await client.ended();
      await backend.ended();
    }));
});

describe('the number of upgrades', () => {
  const stage = withGateway({ maxUpgrades: 1 });
  it('is bounded: 503', async () => {
    stage.backend.respond(SWITCHES);
    const first = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    await first.head();
    const second = await stage.gateway.send(stage.gateway.head('GET /chat', ...ASKS));
    expect(await second.ended()).toMatch(/^HTTP\/1\.1 503 .*"overloaded"/s);
  });
});
