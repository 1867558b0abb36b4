import { describe, expect, it } from '@jest/globals';
import { AddressList } from '../../src/platform/address-list.ts';
import { until } from '../support/until.ts';
import { plan } from './support/gateway.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n`;
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

describe('a long response', () => {
  const stage = withGateway({ backendIdleMs: 600_000 });

  /** A response that has begun, and lasts for long enough to be noticed. */
  async function begin(
    response = CHUNKED,
    head = stage.gateway.head('GET /events'),
  ): Promise<{ readonly client: RawPeer; readonly backend: RawPeer }> {
    const index = stage.backend.connections.length;
    const client = await stage.gateway.send(head);
    const backend = await stage.backend.connection(index);
    backend.send(response);
    await client.head();
    await until(() => stage.gateway.proxy.usedKeys.length === 1);
    return { client, backend };
  }

  it.each([
    ['is disabled', 'unauthenticated', 'key_disabled', () => stage.gateway.change({ enabled: false })],
    ['is deleted', 'unauthenticated', 'invalid_api_key', () => stage.gateway.delete()],
    ['expires', 'unauthenticated', 'key_expired', () => stage.gateway.change({ expiresAtMs: Date.now() })],
    [
      'has another secret',
      'unauthenticated',
      'invalid_api_key',
      () => stage.gateway.change({ secretVersion: 1 }),
    ],
    [
      'may no longer be used from its address',
      'forbidden',
      'address_not_allowed',
      () =>
        stage.gateway.change({
          restrictions: { addresses: new AddressList(['192.0.2.0/24']), origins: null },
        }),
    ],
  ] as const)(
    'is cut, and does not look complete, when its key %s',
    async (_how, outcome, errorCode, change) => {
      const { client, backend } = await begin();
      await change();
      expect(await client.ended()).toMatch(/\r\n\r\n2\r\na\n\r\n$/);
      await backend.ended();
      await until(() => stage.gateway.observed.length === 1 && stage.gateway.recorded.length === 1);
      expect(stage.gateway.observed).toMatchObject([{ status: 200, outcome, errorCode, failure: undefined }]);
      expect(stage.gateway.recorded).toMatchObject([{ status: 200, successful: false }]);
      expect(stage.gateway.proxy.usedKeys).toEqual([]);
    },
  );

  it('is cut when its key expires, also while the record store is down', async () => {
    const { client } = await begin();
    await stage.gateway.change({ expiresAtMs: Date.now() + 1500 });
    const { proxy, observed } = stage.gateway;
    // On a machine that stalls it may have expired already.
    await until(() => proxy.usedKeys[0]?.version === '2.0' || observed.length === 1);
    stage.gateway.keyStore.isDown = true;
    await client.ended();
    await until(() => stage.gateway.observed.length === 1);
    expect(stage.gateway.observed).toMatchObject([{ errorCode: 'key_expired' }]);
  });

  it('is cut when its key was disabled before it counted as long', async () => {
    const { gateway, backend } = stage;
    gateway.keyStore.hidesOutdated = true;
    const client = await gateway.send(gateway.head('GET /events'));
    const upstream = await backend.connection();
    await upstream.head();
    await gateway.change({ enabled: false });
    upstream.send(CHUNKED);
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 200 /);
    await upstream.ended();
  });

  it('is cut also where the replica misses the notice of the change', async () => {
    const { client } = await begin();
    stage.gateway.isFeedSilent = true;
    await stage.gateway.change({ enabled: false });
    await client.ended();
    await until(() => stage.gateway.observed.length === 1);
    expect(stage.gateway.observed).toMatchObject([{ errorCode: 'key_disabled' }]);
  });

  it('is reset for a client of HTTP/1.0 to whom an end would mean the end of the body', async () => {
    const head = stage.gateway.head('GET /events').replace('HTTP/1.1', 'HTTP/1.0');
    const { client } = await begin(CHUNKED, head);
    await stage.gateway.change({ enabled: false });
    await client.ended();
    expect(client.ending).toBe('reset');
  });

  it('of known length is cut before its end, also to a client that takes nothing', async () => {
    const length = 32 * 1024 * 1024;
    const { client } = await begin(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`);
    client.socket.pause();
    stage.backend.connections[0]?.send(Buffer.alloc(length - 1));
    await stage.gateway.change({ enabled: false });
    await until(() => stage.gateway.observed.length === 1);
    client.socket.resume();
    await client.ended();
    expect(client.length).toBeLessThan(length);
  });

  it('goes on after any other change of its key, and holds nothing when it is over', async () => {
    const { client, backend } = await begin();
    await stage.gateway.change({ plan: plan(5) });
    await until(() => stage.gateway.proxy.usedKeys[0]?.version === '2.0');
    backend.send('2\r\nb\n\r\n0\r\n\r\n');
    await client.until((text) => text.endsWith('a\n\r\n2\r\nb\n\r\n0\r\n\r\n'));
    await until(() => stage.gateway.observed.length === 1);
    expect(stage.gateway.observed).toMatchObject([{ outcome: 'forwarded' }]);
    expect(stage.gateway.proxy.usedKeys).toEqual([]);
    stage.backend.respond(OK);
    client.send(stage.gateway.head('GET /later'));
    expect(await client.until((text) => text.endsWith('ok'))).toContain('HTTP/1.1 200 OK');
  });

  it('of another key goes on', async () => {
    const { client, backend } = await begin(
      CHUNKED,
      stage.gateway.headOf(stage.gateway.otherSecret, 'GET /'),
    );
    await stage.gateway.change({ enabled: false });
    const rejected = await stage.gateway.send(stage.gateway.head('GET /'));
    expect(await rejected.head()).toMatch(/^HTTP\/1\.1 401 /);
    backend.send('0\r\n\r\n');
    await client.until((text) => text.endsWith('\r\n0\r\n\r\n'));
  });

  it('that declines an upgrade is cut like any other', async () => {
    const { client } = await begin(
      CHUNKED,
      stage.gateway.head('GET /', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: abc'),
    );
    await stage.gateway.change({ enabled: false });
    expect(await client.ended()).toMatch(/\r\n\r\n2\r\na\n\r\n$/);
  });
});
