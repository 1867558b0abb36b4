import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { StoreUnavailable } from '../../src/errors.ts';
import type { Reloaded } from '../../src/keys/cache/key-cache.ts';
import { KeyEntry } from '../../src/keys/cache/key-entry.ts';
import { KeyUses } from '../../src/proxy/key-uses.ts';
import { Tunnels } from '../../src/proxy/tunnels/tunnels.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const NEVER_MS = 600_000;
const HOUR_MS = 3_600_000;
const ASKS = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: abc',
  'Sec-WebSocket-Version: 13',
];
const SWITCHES = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n';

describe('a tunnel whose client has gone', () => {
  const stage = withGateway({ upgradeIdleMs: NEVER_MS });

  async function open(): Promise<{ readonly client: RawPeer; readonly backend: RawPeer }> {
    stage.backend.respond(SWITCHES);
    const client = await stage.gateway.send(stage.gateway.head('GET /', ...ASKS));
    await client.head();
    return { client, backend: await stage.backend.connection() };
  }

  const leave = ['end', 'destroy', 'reset'] as const;

  it.each(leave)('by %s is closed with its backend side', async (how) => {
    const { client, backend } = await open();
    client.send('last words');
    await backend.until((text) => text.endsWith('last words'));
    client[how]();
    await backend.ended();
    await until(() => stage.gateway.proxy.backendPlaces === 0);
    client.destroy();
  });

  it.each(leave)('by %s takes bytes along that the backend has not read', async (how) => {
    const { client, backend } = await open();
    backend.socket.pause();
    // More than the system keeps for the two connections, so that the gateway holds some of it.
    client.send(Buffer.alloc(24 * 1024 * 1024));
    await until(() => stage.gateway.proxy.backendLoad.tunnels === 1 && client.socket.writableLength > 0);
    client[how]();
    if (how === 'end') client.destroy();
    await until(() => stage.gateway.proxy.backendPlaces === 0);
    backend.destroy();
  });

  it('gets what its backend sent last when that ends', async () => {
    const { client, backend } = await open();
    backend.send(Buffer.alloc(1024 * 1024, 'x'));
    backend.send('last words');
    backend.end();
    expect(await client.ended()).toMatch(/last words$/);
    await until(() => stage.gateway.proxy.backendPlaces === 0);
  });
});

describe('the tunnels of a key that can not be read', () => {
  const PREVIOUS = { secretVersion: 0, digest: 'previous' };
  const PRESENT = { secretVersion: 1, digest: 'present' };
  const SNAPSHOT = {
    ...{ keyId: 'key_one', version: '1.0', enabled: true, expiresAtMs: null, plan: null, restrictions: null },
    ...{ secretVersion: 1, previousSecret: { version: 0, validUntilMs: HOUR_MS } },
  };
  const reads: Reloaded[] = [];
  const sockets: Socket[] = [];
  let server: Server;
  let keyUses: KeyUses;
  let tunnels: Tunnels;
  let clock: ManualClock;

  beforeEach(async () => {
    reads.length = 0;
    clock = new ManualClock(0);
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    keyUses = new KeyUses({ isCurrent: () => true, reload: (_entry, read) => reads.push(read) }, clock);
    tunnels = new Tunnels(keyUses);
  });

  afterEach(async () => {
    jest.useRealTimers();
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  /** The end of a new connection that the gateway would have. */
  async function connection(): Promise<Socket> {
    const address = server.address();
    const peer = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1');
    const [[socket]] = await Promise.all([once(server, 'connection'), once(peer, 'connect')]);
    sockets.push(peer, socket);
    return socket;
  }

  /** Opens a tunnel for each of the secrets. Timers are those of the test from then on. */
  async function openFor(...secrets: readonly (typeof PRESENT)[]): Promise<readonly Socket[]> {
    const ends = [];
    for (const secret of secrets) {
      const entry = KeyEntry.of(SNAPSHOT, secret, 0);
      if (entry === undefined) throw new Error('no secret of the key');
      ends.push({ entry, client: await connection(), backend: await connection() });
    }
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
    const source = { address: '127.0.0.1', origin: undefined, isFromBrowser: false };
    for (const each of ends)
      tunnels.open({ ...each, source, firstBytes: Buffer.alloc(0), idleMs: undefined });
    return ends.map(({ client }) => client);
  }

  /** Fails all reads that wait, and returns how many these were. */
  function failReads(): number {
    const failed = reads.splice(0);
    for (const read of failed) read(new StoreUnavailable('postgres', undefined), undefined);
    return failed.length;
  }

  it.each([
    ['the time passes', () => clock.advance(HOUR_MS)],
    ['the clock is set ahead', () => clock.setWallClockAhead(HOUR_MS)],
  ])('are checked soon after the end of a secret, where %s', async (_how, move) => {
    await openFor(PREVIOUS);
    jest.advanceTimersByTime(1000);
    expect(reads).toHaveLength(0);
    move();
    jest.advanceTimersByTime(250);
    expect(reads).toHaveLength(1);
  });

  it('have each of its secrets read once a second, however often they are checked', async () => {
    await openFor(PREVIOUS, PRESENT);
    expect(reads).toHaveLength(0);
    for (let checks = 1; checks <= 5; checks += 1) {
      keyUses.recheckAll();
      expect(failReads()).toBe(2);
    }
    for (let seconds = 1; seconds <= 3; seconds += 1) {
      jest.advanceTimersByTime(1000);
      expect(failReads()).toBe(2);
    }
  });

  it('leave no timer behind when they close, also if a read fails afterwards', async () => {
    const [client] = await openFor(PRESENT);
    keyUses.recheckAll();
    failReads();
    keyUses.recheckAll();
    client?.destroy();
    await new Promise((resolve) => client?.once('close', resolve));
    expect(jest.getTimerCount()).toBe(0);
    expect(failReads()).toBe(1);
    expect(jest.getTimerCount()).toBe(0);
  });
});
