import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import type { RawPeer } from './support/raw-peer.ts';
import { withGateway } from './support/with-gateway.ts';

const NEVER_MS = 600_000;
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
