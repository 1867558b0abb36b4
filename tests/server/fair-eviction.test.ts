import { describe, expect, it } from '@jest/globals';
import type { RawPeer } from '../proxy/support/raw-peer.ts';
import { until } from '../support/until.ts';
import { GET, HALF_HEAD, withLimitedPort } from './support/with-limited-port.ts';

const MOST = 60;
const COUNT_EVERY_MS = 1000;
/** Younger connections are not closed: their first request may be under way. */
const UNUSED_MS = 250;
/** The address that has filled the port, and others. */
const [FULL, OTHER, THIRD] = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];

// The clock stands still, so that no connection is old enough to be closed for being idle.
describe.each([
  ['of IPv4', '127.0.0.1'],
  ['of IPv6 that takes IPv4 as well', '::'],
])('a port that one address has filled, %s', (_name, host) => {
  const port = withLimitedPort(MOST, host);

  /** Connects until the port is full. */
  async function fill(bytes = ''): Promise<RawPeer[]> {
    const filling = [];
    while (filling.length < MOST) filling.push(await port.connect(bytes, FULL));
    await until(() => port.limit.open === MOST);
    port.clock.advance(UNUSED_MS);
    return filling;
  }

  const openOf = (peers: readonly RawPeer[]) => peers.filter(({ ending }) => ending === 'open');

  /** Whether a new client gets its response. */
  async function isServed(from: string): Promise<boolean> {
    const client = await port.connect(GET, from);
    await until(() => client.ending !== 'open' || client.text.endsWith('ok'));
    return client.ending === 'open';
  }

  it('serves clients of other addresses, closing a connection without a byte for each', async () => {
    const filling = await fill();
    for (let served = 1; served <= 10; served += 1) {
      expect(await isServed(OTHER)).toBe(true);
      expect(await isServed(THIRD)).toBe(true);
    }
    expect(port.limit.rejected).toBe(0);
    expect(port.limit.evicted).toBe(20);
    await until(() => openOf(filling).length === MOST - 20);
    expect(openOf(filling)).toEqual(filling.slice(20));
    expect(port.limit.open).toBe(MOST);
  });

  it('serves them although connections of that address come back once they are closed', async () => {
    await fill();
    let isAttacking = true;
    const attackers = Array.from({ length: MOST / 4 }, async () => {
      while (isAttacking) await (await port.connect('', FULL)).ended();
    });
    for (let served = 1; served <= 5; served += 1) {
      expect(await isServed(OTHER)).toBe(true);
      port.clock.advance(COUNT_EVERY_MS);
    }
    isAttacking = false;
    for (const client of port.clients) client.destroy();
    await Promise.all(attackers);
  });

  it('closes nothing for further clients of that address', async () => {
    const filling = await fill();
    expect(await isServed(FULL)).toBe(false);
    expect(openOf(filling)).toHaveLength(MOST);
    expect([port.limit.rejected, port.limit.evicted]).toEqual([1, 0]);
  });

  it('closes no connection that is new: its request may be under way', async () => {
    const filling = await fill(HALF_HEAD);
    filling[0]?.destroy();
    await until(() => port.limit.open === MOST - 1);
    const fresh = await port.connect('', FULL);
    await until(() => port.limit.open === MOST);
    expect(await isServed(OTHER)).toBe(false);
    fresh.send(GET);
    await fresh.until((text) => text.endsWith('ok'));
  });

  it('closes no connection that has sent something', async () => {
    const filling = await fill(HALF_HEAD);
    // What was sent on the last of them has been read by the time that this one is rejected.
    expect(await isServed(FULL)).toBe(false);
    expect(await isServed(OTHER)).toBe(false);
    expect(openOf(filling)).toHaveLength(MOST);
  });

  it('leaves that address its share, however many connect from another one', async () => {
    const filling = await fill();
    for (let count = 0; count < 2 * MOST; count += 1) await port.connect('', OTHER);
    await until(() => port.limit.rejected > 0);
    expect(port.limit.evicted).toBe(MOST / 2);
    port.clock.advance(COUNT_EVERY_MS);
    await port.connect('', OTHER);
    expect(await isServed(THIRD)).toBe(true);
    expect(openOf(filling).length).toBeGreaterThanOrEqual(MOST / 3);
  });
});
