import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { statusOf } from '../support/burst.ts';
import type { RunningGateway } from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { type RedisFleet, startInProcessRedisFleet, untilDegraded } from './support/redis-fleet.ts';

let server: RedisServer;
let relay: TcpRelay;
let fleet: RedisFleet;

beforeAll(async () => {
  server = await startRedisServer();
  relay = await TcpRelay.start(server.port);
  // The second one has its own way to Redis, which breaks.
  fleet = await startInProcessRedisFleet([
    { REDIS_URL: server.url, REDIS_TIMEOUT_MS: '5000' },
    { REDIS_URL: relay.urlOf(server.url) },
  ]);
});
afterAll(async () => {
  await fleet?.stop();
  await relay?.stop();
  await server?.stop();
});

/** A connection that the backend has switched to another protocol. */
async function upgrade({ url }: RunningGateway, secret: string): Promise<RawPeer> {
  const peer = await RawPeer.connect(Number(new URL(url).port));
  peer.send(
    `GET / HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  );
  expect(await peer.head()).toMatch(/^HTTP\/1\.1 101 /);
  return peer;
}

describe('a replica that alone has lost Redis', () => {
  it('follows when a key is deleted, disabled or enabled elsewhere; others go on', async () => {
    const cutOff = fleet.replicas[1];
    if (cutOff === undefined) throw new Error('no second replica');
    await fleet.admin.makePlan('room', 1_000_000, 'hour');
    const [deleted, disabled, enabled, kept] = await Promise.all(
      ['deleted', 'disabled', 'enabled', 'kept'].map((name) => fleet.admin.makeKey(name, 'room')),
    );
    if (!deleted || !disabled || !enabled || !kept) throw new Error('no keys');
    for (const { secret } of [deleted, disabled, kept]) expect(await statusOf(cutOff.url, secret)).toBe(200);
    await fleet.admin.call('PATCH', `/consumer-api-key/${enabled.id}`, { enabled: false });
    expect(await statusOf(cutOff.url, enabled.secret)).toBe(401);
    const upgraded = await Promise.all(
      [deleted, disabled, kept].map(({ secret }) => upgrade(cutOff, secret)),
    );
    relay.reject();
    await untilDegraded([cutOff], kept.secret, true);

    await fleet.admin.deleteKey(deleted.id);
    await fleet.admin.call('PATCH', `/consumer-api-key/${disabled.id}`, { enabled: false });
    await fleet.admin.call('PATCH', `/consumer-api-key/${enabled.id}`, { enabled: true });
    await until(async () => {
      expect(await statusOf(cutOff.url, kept.secret)).toBe(200);
      const statuses = [
        await statusOf(cutOff.url, deleted.secret),
        await statusOf(cutOff.url, disabled.secret),
        await statusOf(cutOff.url, enabled.secret),
      ];
      return statuses.join() === '401,401,200';
    });

    // Upgraded connections end without Redis.
    await until(() => upgraded[0]?.ending !== 'open' && upgraded[1]?.ending !== 'open');
    relay.pass(server.port);
    await untilDegraded([cutOff], kept.secret, false);
    expect(await statusOf(cutOff.url, deleted.secret)).toBe(401);
    expect(upgraded[2]?.ending).toBe('open');
    upgraded[2]?.socket.destroy();
  });
});
