import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RawPeer } from '../proxy/support/raw-peer.ts';
import { statusOf } from '../support/burst.ts';
import { onRedis } from '../support/on-redis.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { ask } from './support/redis-fleet.ts';
import { type FleetKey, startTwoWays, type TwoWays } from './support/two-ways.ts';

describe('changes that Redis loses', () => {
  let stops: (() => Promise<unknown>)[];
  /** Runs when a client of either way has sent something. */
  let onSent: (bytes: Buffer) => void;

  beforeEach(() => {
    stops = [];
    onSent = () => {};
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
  });

  async function startServer(args: readonly string[] = []): Promise<RedisServer> {
    const server = await startRedisServer(args);
    // The last one of all: a replica writes usage as it stops.
    stops.unshift(() => server.stop());
    return server;
  }

  async function startWorld(master: RedisServer): Promise<TwoWays> {
    const settings = { REDIS_TIMEOUT_MS: '2000' };
    return startTwoWays(master, { stops, settings, onSent: (bytes) => onSent(bytes) });
  }

  /** A standby of the master that no write reaches any more. */
  async function startStandbyThatFallsBehind(master: RedisServer): Promise<{
    readonly standby: RedisServer;
    readonly fallBehind: () => Promise<void>;
    readonly promote: () => Promise<void>;
  }> {
    const standby = await startServer();
    const replication = await TcpRelay.start(master.port);
    stops.push(() => replication.stop());
    const [direct, toMaster] = [new Redis(standby.url), new Redis(master.url)];
    direct.on('error', () => {});
    toMaster.on('error', () => {});
    stops.push(async () => [direct, toMaster].map((redis) => redis.disconnect()));
    await direct.replicaof('127.0.0.1', replication.port);
    return {
      standby,
      fallBehind: async () => {
        // WAIT counts the writes of its own connection only, and the standby has all earlier ones by then.
        await toMaster.set('the last write that is copied', '');
        await until(async () => Number(await toMaster.wait(1, 100)) === 1);
        replication.silence();
      },
      promote: async () => void (await direct.replicaof('NO', 'ONE')),
    };
  }

  async function openWebSocket(url: string, { secret }: FleetKey): Promise<RawPeer> {
    const peer = await RawPeer.connect(Number(new URL(url).port));
    peer.send(
      `GET / HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    expect(await peer.head()).toMatch(/^HTTP\/1\.1 101 /);
    return peer;
  }

  it('hold when the master dies in mid-deletion, before its standby has the change', async () => {
    const master = await startServer();
    const { standby, fallBehind, promote } = await startStandbyThatFallsBehind(master);
    const world = await startWorld(master);
    const { deleted, kept } = await world.makeKeys(['deleted', 'kept']);
    const { fleet, ways, urls } = world;
    await fallBehind();

    // The row is gone when the message is sent, and the tombstone comes after it.
    onSent = (bytes) => {
      if (bytes.includes('tg:changes') && bytes.includes(deleted.id)) master.kill('SIGKILL');
    };
    const { status, headers } = await fleet.admin.call('DELETE', `/consumer-api-key/${deleted.id}`);
    expect({ status, within: headers.get('tollgate-applies-within') }).toEqual({ status: 200, within: '3' });
    onSent = () => {};
    await promote();
    const direct = new Redis(standby.url);
    stops.push(async () => direct.disconnect());
    expect(await direct.get(`tg:{${deleted.id}}:version`)).toBe('2.1');
    for (const way of ways) way.pass(standby.port);

    for (const url of urls) {
      await until(async () => (await statusOf(url, deleted.secret)) === 401);
      await until(async () => (await ask(url, kept.secret)).headers.has('x-ratelimit-remaining'));
    }
    expect((await fleet.admin.call('DELETE', `/consumer-api-key/${deleted.id}`)).status).toBe(404);
    // A replica that could not publish a moment ago leaves the tombstone to its publisher.
    await until(async () => (await direct.get(`tg:{${deleted.id}}:version`)) === '-');
    for (const url of urls) expect(await statusOf(url, deleted.secret)).toBe(401);
  });

  it('hold beyond a split while a replica is with the old master, and after it', async () => {
    const master = await startServer();
    const { standby, fallBehind, promote } = await startStandbyThatFallsBehind(master);
    const world = await startWorld(master);
    const keys = await world.makeKeys(['deleted', 'disabled', 'lowered', 'connected', 'kept']);
    const { deleted, disabled, lowered, connected, kept } = keys;
    const { fleet, ways, urls } = world;
    const [here, there] = urls;
    await fallBehind();
    await promote();
    ways[1].pass(standby.port);
    ways[1].cut();
    await until(async () => (await ask(there, kept.secret)).headers.has('x-ratelimit-remaining'));
    const socket = await openWebSocket(there, connected);

    await fleet.admin.deleteKey(deleted.id);
    await fleet.admin.deleteKey(connected.id);
    await fleet.admin.call('PATCH', `/consumer-api-key/${disabled.id}`, { enabled: false });
    await fleet.admin.call('PATCH', '/rate-limit/lowered', { limit: 1 });
    const hold = async (url: string): Promise<boolean> =>
      (await statusOf(url, deleted.secret)) === 401 &&
      (await statusOf(url, disabled.secret)) === 401 &&
      (await statusOf(url, lowered.secret)) === 429;
    expect(await hold(here)).toBe(true);
    await until(() => hold(there));
    await until(() => socket.ending !== 'open');

    ways[0].pass(standby.port);
    ways[0].cut();
    for (const url of urls) {
      await until(async () => (await ask(url, kept.secret)).headers.has('x-ratelimit-remaining'));
      await until(() => hold(url));
    }
    // The promoted server has had the old versions since before the changes: they mislead no replica any more, and cost no reading.
    const direct = new Redis(standby.url);
    stops.push(async () => direct.disconnect());
    expect(await direct.get(`tg:{${lowered.id}}:version`)).toMatch(/^2\.2( |$)/);
  });

  it('hold when Redis is restarted with what it had saved before them', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-rollback-'));
    stops.push(() => rm(directory, { recursive: true, force: true }));
    const args = ['--dir', directory, '--dbfilename', 'dump.rdb'];
    const server = await startServer(args);
    const world = await startWorld(server);
    const { deleted, disabled, kept } = await world.makeKeys(['deleted', 'disabled', 'kept']);
    const { fleet, urls } = world;
    await onRedis(server.url, (direct) => direct.save());

    await fleet.admin.deleteKey(deleted.id);
    await fleet.admin.call('PATCH', `/consumer-api-key/${disabled.id}`, { enabled: false });
    server.kill('SIGKILL');
    await startServer([...args, '--port', String(server.port)]);
    for (const url of urls) {
      await until(async () => (await ask(url, kept.secret)).headers.has('x-ratelimit-remaining'));
      await until(async () => (await statusOf(url, deleted.secret)) === 401);
      await until(async () => (await statusOf(url, disabled.secret)) === 401);
    }
  });
});
