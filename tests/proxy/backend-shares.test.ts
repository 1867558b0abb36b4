import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { plan } from './support/gateway.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const ASKS = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: abc',
  'Sec-WebSocket-Version: 13',
];
const SWITCHES = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';

describe('a key that holds its share of the backend', () => {
  const stage = withGateway({
    backendConnections: 4,
    backendConnectionsPerKey: 2,
    backendWaiting: 4,
    backendTimeoutMs: 60_000,
  });

  /** Fills the key's connections and its places to wait. */
  async function fill(): Promise<void> {
    const { gateway } = stage;
    for (let i = 0; i < 4; i += 1) await gateway.send(gateway.head(`GET /slow/${i}`));
    await until(() => gateway.proxy.backendLoad.busy === 2 && gateway.proxy.backendLoad.waiting === 2);
  }

  it('leaves the rest of it to others', async () => {
    const { gateway, backend } = stage;
    await fill();
    backend.onConnection((connection) => connection.respondToEachHead(OK));
    const other = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /other'));
    await other.until((text) => text.endsWith('ok'));
    expect(gateway.proxy.backendLoad).toMatchObject({ busy: 2, waiting: 2 });
  });

  it('gets 503 with a specific message, and a metric counts it', async () => {
    const { gateway } = stage;
    await fill();
    const rejected = await gateway.send(gateway.head('GET /5'));
    expect(await rejected.until((text) => text.endsWith('}'))).toMatch(
      /^HTTP\/1\.1 503 .*Too many requests of this API key are waiting.*"overloaded"/s,
    );
    expect(gateway.proxy.counters.overloaded.request).toEqual({ full: 0, key_full: 1 });
  });

  it('loses no quota by a 503', async () => {
    const { gateway, backend } = stage;
    await gateway.change({ plan: plan(5) });
    await fill();
    for (let i = 0; i < 10; i += 1) {
      const rejected = await gateway.send(gateway.head('GET /5'));
      await rejected.until((text) => text.endsWith('}'));
      expect(rejected.text).toMatch(/^HTTP\/1\.1 503 /);
      rejected.destroy();
    }
    await until(() => gateway.recorded.length === 10);
    for (const client of gateway.clients) client.destroy();
    await gateway.settled();
    backend.onConnection((connection) => connection.respondToEachHead(OK));
    const fifth = await gateway.send(gateway.head('GET /'));
    expect(await fifth.until((text) => text.endsWith('ok'))).toContain('\r\nX-RateLimit-Remaining: 0\r\n');
  });

  it('has its places back after every way in which a request can end', async () => {
    const { gateway, backend } = stage;
    await gateway.change({ plan: plan(2) });
    backend.respond(OK);
    for (let i = 0; i < 8; i += 1) {
      const client = await gateway.send(gateway.head('GET /'));
      await client.until((text) => text.endsWith(i < 2 ? 'ok' : '}'));
      expect(gateway.proxy.backendPlaces).toBe(0);
    }
    gateway.keyStore.delayMs = 50;
    const gone = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /'));
    gone.destroy();
    await until(() => gateway.observed.length === 9);
    expect(gateway.proxy.backendPlaces).toBe(0);
  });
});

describe('upgrades of one key', () => {
  const stage = withGateway({ upgradesPerKey: 1 });

  it('are bounded, with a specific message, while others have theirs', async () => {
    const { gateway, backend } = stage;
    backend.respond(SWITCHES);
    const first = await gateway.send(gateway.head('GET /', ...ASKS));
    await first.head();
    const second = await gateway.send(gateway.head('GET /', ...ASKS));
    expect(await second.ended()).toMatch(
      /^HTTP\/1\.1 503 .*Too many upgraded connections of this API key.*"overloaded"/s,
    );
    expect(second.text).toMatch(/\r\nRetry-After: 1\r\n/);
    const other = await gateway.send(gateway.headOf(gateway.otherSecret, 'GET /', ...ASKS));
    expect(await other.head()).toMatch(/^HTTP\/1\.1 101 /);
    expect(gateway.proxy.counters.overloaded.upgrade).toEqual({ full: 0, key_full: 1 });
  });

  it('free their place when they end, and when they were not granted', async () => {
    const { gateway, backend } = stage;
    backend.respond('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    for (let i = 0; i < 3; i += 1) {
      const client = await gateway.send(gateway.head('GET /', ...ASKS));
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 403 /);
    }
    backend.respond(SWITCHES);
    for (let i = 0; i < 3; i += 1) {
      const client = await gateway.send(gateway.head('GET /', ...ASKS));
      expect(await client.head()).toMatch(/^HTTP\/1\.1 101 /);
      client.destroy();
      await until(() => gateway.proxy.backendPlaces === 0);
    }
  });
});

describe('a look-up that takes as long as the backend may', () => {
  const stage = withGateway({ backendTimeoutMs: 100 });

  it('is 503, because nothing was sent to the backend, and costs no quota', async () => {
    const { gateway, backend } = stage;
    backend.respond(OK);
    gateway.keyStore.delayMs = 300;
    const late = await gateway.send(gateway.head('GET /late'));
    expect(await late.until((text) => text.endsWith('}'))).toMatch(/^HTTP\/1\.1 503 .*"store_unavailable"/s);
    gateway.keyStore.delayMs = 0;
    const remaining: string[] = [];
    await until(async () => {
      const next = await gateway.send(gateway.head('GET /next'));
      const response = await next.until((text) => /(?:ok|\})$/.test(text));
      remaining.push(...(/\r\nX-RateLimit-Remaining: (\d+)/.exec(response)?.slice(1) ?? []));
      // A busy machine may be slower than the timeout.
      return response.startsWith('HTTP/1.1 200 ');
    });
    expect(remaining[0]).toBe('999999');
    expect(backend.received).not.toContain('/late');
    await until(() => gateway.recorded.at(-1)?.successful === true);
    expect(gateway.recorded[0]).toMatchObject({ successful: false, responseTimeMs: null });
  });
});
