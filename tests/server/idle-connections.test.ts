import { describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { until } from '../support/until.ts';
import { GET, HALF_HEAD, withLimitedPort } from './support/with-limited-port.ts';

const MOST = 64;
/** Connections without a byte are closed at this age at the earliest. Milliseconds. */
const UNUSED_MS = 1000;

describe('a port that is nearly full', () => {
  const port = withLimitedPort(MOST);

  /** A connection that has had a request and is kept. */
  async function kept(): Promise<RawPeer> {
    const client = await port.connect(GET);
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
    while (port.limit.rejected + port.limit.evicted === 0) await port.connect(bytes);
  }

  it('serves new clients although idle connections after a request have taken it all', async () => {
    for (let i = 0; i < 4 * MOST; i += 1) await kept();
    const client = await kept();
    expect(client.ending).toBe('open');
    expect(port.limit.rejected).toBe(0);
    expect(port.limit.evicted).toBeGreaterThanOrEqual(3 * MOST);
    expect(port.pressures).toEqual(['evicting']);
  });

  it('serves new clients although connections without a byte have taken it all', async () => {
    await fill();
    port.clock.advance(UNUSED_MS);
    await port.connect();
    await until(() => port.limit.evicted > 0);
    for (let i = 0; i < MOST; i += 1) await kept();
    expect(port.limit.evicted).toBeGreaterThan(MOST / 2);
  });

  it('closes connections without a byte before those that had a request', async () => {
    const used = await keptConnections(MOST / 2);
    while (port.limit.excess < 0) {
      const { open } = port.limit;
      await port.connect();
      await until(() => port.limit.open > open);
    }
    port.clock.advance(UNUSED_MS);
    while (port.limit.evicted < MOST / 8) await port.connect(HALF_HEAD);
    expect(endings(used)).toEqual(['open']);
  });

  it('closes no connections for others that are new and have not sent a byte', async () => {
    const used = await keptConnections(MOST / 4);
    await fill();
    expect(port.limit.evicted).toBe(0);
    expect(endings(used)).toEqual(['open']);
  });

  it('counts no connection as kept on which the next request has begun', async () => {
    const used = await keptConnections(MOST / 4 - 1);
    const others = await keptConnections(MOST * 0.8 - used.length);
    for (const other of others) other.send(HALF_HEAD);
    used.push(await kept()); // what the others sent has been read by now
    await fill(HALF_HEAD);
    expect(port.limit.evicted).toBe(0);
    expect(endings(used)).toEqual(['open']);
  });

  it('closes the connection first that has been idle for longest', async () => {
    const oldest = await kept();
    const others = [];
    while (port.limit.open < MOST * 0.9) others.push(await kept());
    oldest.send(GET);
    await oldest.until((text) => text.split('ok').length === 3);
    while (port.limit.evicted === 0) await kept();
    await others[0]?.ended();
    expect(oldest.ending).toBe('open');
  });

  it('keeps connections with a request, also one of which only a part has arrived', async () => {
    const busy = [
      await port.connect('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'),
      await port.connect(HALF_HEAD),
      await port.connect('POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\npart'),
    ];
    const again = await kept();
    again.send(HALF_HEAD);
    for (let i = 0; i < 3 * MOST; i += 1) await kept();
    expect([...busy, again].map(({ ending }) => ending)).toEqual(['open', 'open', 'open', 'open']);
  });

  it('serves a request that arrives with the connection for which another must go', async () => {
    const first = await kept();
    while (port.limit.excess < 0) await kept();
    await until(() => port.limit.excess === 0);
    const next = RawPeer.connect(port.port);
    // Node connects in the next tick: both are there when the server looks, the connection first.
    process.nextTick(() => first.send(GET));
    port.clients.push(await next);
    await first.until((text) => text.split('ok').length === 3);
    expect(first.ending).toBe('open');
  });

  it('keeps a quarter of idle connections where others fill it, and rejects new ones', async () => {
    const used = await keptConnections(MOST / 4);
    await fill(HALF_HEAD);
    expect(port.limit.evicted).toBe(0);
    expect(endings(used)).toEqual(['open']);
    expect(port.pressures).toEqual(['rejecting']);
  });
});

/** The different ways in which connections have ended. */
function endings(connections: readonly RawPeer[]): readonly string[] {
  return [...new Set(connections.map(({ ending }) => ending))];
}
