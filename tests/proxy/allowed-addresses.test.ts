import { BlockList } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import type { KeyRestrictions } from '../../src/keys/key-restrictions.ts';
import { AddressList } from '../../src/platform/address-list.ts';
import { until } from '../support/until.ts';
import { plan } from './support/gateway.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const UPGRADE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: abc'];
const SWITCHES =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: xyz\r\n\r\n';

function onlyFrom(...entries: readonly string[]): { readonly restrictions: KeyRestrictions } {
  return { restrictions: { addresses: new AddressList(entries), origins: null } };
}

describe('a key with allowed addresses', () => {
  const stage = withGateway();

  async function responseTo(...lines: readonly string[]): Promise<string> {
    stage.backend.respond(OK);
    return (await stage.gateway.send(stage.gateway.head('GET /a?b', 'Connection: close', ...lines))).ended();
  }

  it('works from them', async () => {
    await stage.gateway.change(onlyFrom('192.0.2.0/24', '127.0.0.0/8'));
    expect(await responseTo()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is 403 from others: costs nothing, reaches no backend, and is recorded as failed', async () => {
    await stage.gateway.change({ plan: plan(1), ...onlyFrom('192.0.2.0/24') });
    for (let i = 0; i < 3; i += 1) {
      const response = await responseTo();
      expect(response).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
      expect(response).toContain('"code":"address_not_allowed"');
      expect(response).not.toMatch(/ratelimit|www-authenticate/i);
    }
    expect(stage.backend.received).toBe('');
    await stage.gateway.settled();
    await until(() => stage.gateway.recorded.length === 3);
    expect(stage.gateway.recorded[0]).toMatchObject({
      keyId: 'key_one',
      endpoint: '/a',
      status: 403,
      successful: false,
      rateLimited: false,
      responseTimeMs: null,
    });
    expect(stage.gateway.observed[0]).toMatchObject({
      status: 403,
      outcome: 'forbidden',
      errorCode: 'address_not_allowed',
      keyId: 'key_one',
      decision: undefined,
    });
    await stage.gateway.change({ restrictions: null });
    expect(await responseTo()).toMatch(/^HTTP\/1\.1 200 .*\r\nX-RateLimit-Remaining: 0\r\n/s);
  });

  it.each([
    'X-Forwarded-For: 192.0.2.7',
    'Forwarded: for=192.0.2.7',
    'X-Real-IP: 192.0.2.7',
    'X-Client-IP: 192.0.2.7',
  ])('is not used from elsewhere by a claim: %s', async (claim) => {
    await stage.gateway.change(onlyFrom('192.0.2.0/24'));
    expect(await responseTo(claim)).toMatch(/^HTTP\/1\.1 403 /);
  });

  it.each([
    ['hears of changes', false],
    ['hears of none', true],
  ])('follows every change with the next request, if the replica %s', async (_what, isFeedSilent) => {
    stage.gateway.isFeedSilent = isFeedSilent;
    const statuses: string[] = [];
    const use = async () => statuses.push((await responseTo()).slice(9, 12));
    await use();
    for (const entry of ['192.0.2.1', '127.0.0.1', '::1', '::ffff:127.0.0.1']) {
      await stage.gateway.change(onlyFrom(entry));
      await use();
    }
    await stage.gateway.change({ restrictions: null });
    await use();
    await stage.gateway.change({ enabled: false, ...onlyFrom('192.0.2.1') });
    await use();
    expect(statuses).toEqual(['200', '403', '200', '403', '200', '200', '401']);
  });

  it('follows a change also for requests that are being decided', async () => {
    stage.gateway.isFeedSilent = true;
    await responseTo();
    stage.gateway.keyStore.delayMs = 50;
    const all = Promise.all(Array.from({ length: 20 }, () => responseTo()));
    const changed = stage.gateway.change(onlyFrom('192.0.2.1'));
    await Promise.all([all, changed]);
    expect(await responseTo()).toMatch(/^HTTP\/1\.1 403 /);
    await stage.gateway.settled();
    await until(() => stage.gateway.recorded.length === 22);
  });

  it('whose copy forbids an address, and can not be read again, is 503', async () => {
    stage.gateway.isFeedSilent = true;
    await stage.gateway.change(onlyFrom('192.0.2.1'));
    expect(await responseTo()).toMatch(/^HTTP\/1\.1 403 /);
    await stage.gateway.change({ restrictions: null });
    stage.gateway.keyStore.isDown = true;
    expect(await responseTo()).toMatch(/^HTTP\/1\.1 503 /);
  });

  describe('with upgrades', () => {
    const upgrade = (): Promise<RawPeer> => {
      stage.backend.respond(SWITCHES);
      return stage.gateway.send(stage.gateway.head('GET /chat', ...UPGRADE));
    };

    it('is 403 from other addresses', async () => {
      await stage.gateway.change(onlyFrom('192.0.2.1'));
      expect(await (await upgrade()).ended()).toMatch(/^HTTP\/1\.1 403 .*"address_not_allowed"/s);
      expect(stage.backend.connections).toHaveLength(0);
    });

    it('loses those that are open when their address is allowed no longer, and no others', async () => {
      await stage.gateway.change(onlyFrom('127.0.0.1'));
      const client = await upgrade();
      await client.until((text) => text.includes('\r\n\r\n'));
      await stage.gateway.change(onlyFrom('127.0.0.0/8'));
      const backend = await stage.backend.connection(0);
      client.send('still there');
      await backend.until((text) => text.endsWith('still there'));
      await stage.gateway.change(onlyFrom('192.0.2.1'));
      await client.ended();
      await backend.ended();
    });
  });
});

describe('a key with allowed addresses, behind a trusted proxy', () => {
  const trustedProxies = new BlockList();
  trustedProxies.addAddress('127.0.0.1');
  const stage = withGateway({ trustedProxies });

  it.each([
    ['198.51.100.7', '200'],
    ['198.51.100.7:4711', '200'],
    ['::ffff:198.51.100.7', '200'],
    ['::FFFF:c633:6407', '200'],
    ['[2001:db8::7]:4711', '200'],
    ['203.0.113.1, 198.51.100.7', '200'],
    ['198.51.100.7, 203.0.113.1', '403'],
    ['203.0.113.1', '403'],
    ['2001:db9::7', '403'],
    ['198.51.100.7, unknown', '403'],
    ['', '403'],
  ])('is judged by the address that the proxy names: %j is %s', async (forwardedFor, status) => {
    await stage.gateway.change(onlyFrom('198.51.100.0/24', '2001:db8::/32'));
    stage.backend.respond(OK);
    const client = await stage.gateway.send(
      stage.gateway.head('GET /', 'Connection: close', `X-Forwarded-For: ${forwardedFor}`),
    );
    expect((await client.ended()).slice(9, 12)).toBe(status);
  });

  it('is judged by the proxy when it names no address', async () => {
    await stage.gateway.change(onlyFrom('198.51.100.0/24'));
    const client = await stage.gateway.send(stage.gateway.head('GET /', 'Connection: close'));
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 403 /);
  });
});
