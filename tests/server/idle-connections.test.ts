import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConnectionLimit, type ConnectionPressure } from '../../src/server/connection-limit.ts';
import { createPublicServer, type PublicServer } from '../../src/server/public-server.ts';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { testRequestIds } from '../support/request-ids.ts';
import { until } from '../support/until.ts';

const MOST = 64;
const GET = 'GET /fast HTTP/1.1\r\nHost: a\r\n\r\n';
const HALF_HEAD = 'GET /slow HTTP/1.1\r\nHo';
/** Connections without a byte are closed at this age at the earliest. Milliseconds. */
const UNUSED_MS = 1000;

describe('a port that is nearly full', () => {
  let limit: ConnectionLimit;
  let pressures: ConnectionPressure[];
  let server: PublicServer;
  let port: number;
  let clock: ManualClock;
  const clients: RawPeer[] = [];

  beforeEach(async () => {
    clock = new ManualClock(0);
    pressures = [];
    limit = new ConnectionLimit(MOST, (pressure) => pressures.push(pressure));
    server = createPublicServer({
      requestIds: testRequestIds(),
      connectionLimit: limit,
      clock,
      management: (req, res) => {
        if (req.url === '/fast') res.end('ok');
      },
    });
    ({ port } = await server.listen(0, '127.0.0.1'));
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await server.close(0);
  });

  async function connect(bytes = ''): Promise<RawPeer> {
    const client = await RawPeer.connect(port);
    clients.push(client);
    client.send(bytes);
    return client;
  }

  /** A connection that has had a request and is kept. */
  async function kept(): Promise<RawPeer> {
    const client = await connect(GET);
    await client.until((text) => text.endsWith('ok'));
    return client;
  }

  async function keptConnections(count: number): Promise<RawPeer[]> {
    const connections = [];
    while (connections.length < count) connections.push(await kept());
    return connections;
  }

  /** Connects until a connection is rejected, or an idle one is closed for it. */
  async function fill(bytes = ''): Promise<void> {
    while (limit.rejected + limit.evicted === 0) await connect(bytes);
  }

  it('serves new clients although idle connections that had a request have taken it all', async () => {
    for (let i = 0; i < 4 * MOST; i += 1) await kept();
    const client = await kept();
    expect(client.ending).toBe('open');
    expect(limit.rejected).toBe(0);
    expect(limit.evicted).toBeGreaterThanOrEqual(3 * MOST);
    expect(pressures).toEqual(['evicting']);
  });

  it('serves new clients although connections without a byte have taken it all', async () => {
    await fill();
    clock.advance(UNUSED_MS);
    await connect();
    await until(() => limit.evicted > 0);
    for (let i = 0; i < MOST; i += 1) await kept();
    expect(limit.evicted).toBeGreaterThan(MOST / 2);
  });

  it('closes connections without a byte before those that had a request', async () => {
    const used = await keptConnections(MOST / 2);
    while (limit.excess < 0) {
      const { open } = limit;
      await connect();
      await until(() => limit.open > open);
    }
    clock.advance(UNUSED_MS);
    while (limit.evicted < MOST / 8) await connect(HALF_HEAD);
    expect(endings(used)).toEqual(['open']);
  });

  it('closes no connections for others that are new and have not sent a byte', async () => {
    const used = await keptConnections(MOST / 4);
    await fill();
    expect(limit.evicted).toBe(0);
    expect(endings(used)).toEqual(['open']);
  });

  it('counts no connection as kept on which the next request has begun', async () => {
    const used = await keptConnections(MOST / 4 - 1);
    const others = await keptConnections(MOST * 0.8 - used.length);
    for (const other of others) other.send(HALF_HEAD);
    used.push(await kept()); // what the others sent has been read by now
    await fill(HALF_HEAD);
    expect(limit.evicted).toBe(0);
    expect(endings(used)).toEqual(['open']);
  });

  it('closes the connection first that has been idle for longest', async () => {
    const oldest = await kept();
    const others = [];
    while (limit.open < MOST * 0.9) others.push(await kept());
    oldest.send(GET);
    await oldest.until((text) => text.split('ok').length === 3);
    while (limit.evicted === 0) await kept();
    await others[0]?.ended();
    expect(oldest.ending).toBe('open');
  });

  it('keeps connections with a request, also one of which only a part has arrived', async () => {
    const busy = [
      await connect('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'),
      await connect(HALF_HEAD),
      await connect('POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\npart'),
    ];
    const again = await kept();
    again.send(HALF_HEAD);
    for (let i = 0; i < 3 * MOST; i += 1) await kept();
    expect([...busy, again].map(({ ending }) => ending)).toEqual(['open', 'open', 'open', 'open']);
  });

  it('serves a request that arrives together with the connection for which another must go', async () => {
    const first = await kept();
    while (limit.excess < 0) await kept();
    await until(() => limit.excess === 0);
    const next = RawPeer.connect(port);
    // Node connects in the next tick: both are there when the server looks, the connection first.
    process.nextTick(() => first.send(GET));
    clients.push(await next);
    await first.until((text) => text.split('ok').length === 3);
    expect(first.ending).toBe('open');
  });

  it('keeps a quarter of idle connections where others fill it, and rejects new ones', async () => {
    const used = await keptConnections(MOST / 4);
    await fill(HALF_HEAD);
    expect(limit.evicted).toBe(0);
    expect(endings(used)).toEqual(['open']);
    expect(pressures).toEqual(['rejecting']);
  });
});

/** The different ways in which connections have ended. */
function endings(connections: readonly RawPeer[]): readonly string[] {
  return [...new Set(connections.map(({ ending }) => ending))];
}
