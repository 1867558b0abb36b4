import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Admin, type Managed } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';
import { type RedisFleet, startRedisFleet, untilDegraded } from './support/redis-fleet.ts';

const WINDOW_LIMIT = 1_000_000;

interface Key {
  readonly id: string;
  readonly secret: string;
}

/** Two replicas, each with its own way to Redis, which keeps its data on disk. */
interface World {
  readonly fleet: RedisFleet;
  readonly ways: readonly [TcpRelay, TcpRelay];
  readonly urls: readonly [string, string];
  readonly admins: readonly [Admin, Admin];
  readonly redis: RedisServer;
  /** Writes the data of Redis to disk, as it is now. */
  save(): Promise<void>;
  /** A new server with what was saved. Calls `look` before both ways lead to it. */
  returnWithSaved(look: (returned: Redis) => Promise<void>): Promise<Redis>;
}

describe('changes while Redis is away', () => {
  let stops: (() => Promise<unknown>)[];
  let world: World;

  beforeEach(async () => {
    stops = [];
    world = await startWorld();
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
  });

  async function startServer(args: readonly string[]): Promise<RedisServer> {
    const server = await startRedisServer(args);
    stops.push(() => server.stop());
    return server;
  }

  async function startWorld(): Promise<World> {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-redis-'));
    stops.push(() => rm(directory, { recursive: true, force: true }));
    const onDisk = ['--dir', directory];
    const redis = await startServer(onDisk);
    const ways = [await TcpRelay.start(redis.port), await TcpRelay.start(redis.port)] as const;
    for (const way of ways) stops.push(() => way.stop());
    const fleet = await startRedisFleet(ways.map((way) => ({ REDIS_URL: way.urlOf(redis.url) })));
    stops.push(() => fleet.stop());
    const [first, second] = fleet.replicas;
    if (first === undefined || second === undefined) throw new Error('no replicas');
    const direct = (server: RedisServer): Redis => {
      const client = new Redis(server.url);
      client.on('error', () => {});
      stops.push(async () => client.disconnect());
      return client;
    };
    const saving = direct(redis);
    return {
      ...{ fleet, ways, redis },
      urls: [first.url, second.url],
      admins: [new Admin(first.url), new Admin(second.url)],
      save: async () => void (await saving.call('SAVE')),
      returnWithSaved: async (look) => {
        const server = await startServer(onDisk);
        const client = direct(server);
        await look(client);
        for (const way of ways) way.pass(server.port);
        return client;
      },
    };
  }

  /** Keys that both replicas know, each bound to its own plan. */
  async function makeKeys<const Name extends string>(
    names: readonly Name[],
  ): Promise<Readonly<Record<Name, Key>>> {
    const { fleet, urls } = world;
    const keys: Partial<Record<Name, Key>> = {};
    for (const name of names) {
      await fleet.admin.makePlan(name, WINDOW_LIMIT, 'day');
      const key = await fleet.admin.makeKey(name, name);
      for (const url of urls) await until(async () => (await statusOf(url, key.secret)) === 200);
      keys[name] = key;
    }
    return keys as Record<Name, Key>;
  }

  function expectDeferred({ status, headers }: Managed): void {
    expect({ status, within: headers.get('tollgate-applies-within') }).toEqual({ status: 200, within: '3' });
  }

  async function untilRejected(secret: string): Promise<void> {
    for (const url of world.urls) await until(async () => (await statusOf(url, secret)) === 401);
  }

  async function waitingAt(opsUrl: string | undefined): Promise<number | undefined> {
    return metric(opsUrl ?? '', 'tollgate_changes_waiting');
  }

  it('hold on every replica, and still after Redis returned with older data', async () => {
    const { fleet, redis, admins, urls } = world;
    const keys = await makeKeys(['deleted', 'disabled', 'rotated', 'twice', 'limited', 'kept']);
    await world.save();
    redis.kill('SIGKILL');
    await untilDegraded(fleet.replicas, keys.kept.secret, true);

    const [admin, other] = admins;
    const path = (key: Key) => `/consumer-api-key/${key.id}`;
    expectDeferred(await admin.call('DELETE', path(keys.deleted)));
    expectDeferred(await other.call('PATCH', path(keys.disabled), { enabled: false }));
    const rotated = await admin.call('POST', `${path(keys.rotated)}/rotate`, { graceSeconds: 0 });
    expectDeferred(rotated);
    expectDeferred(await admin.call('PATCH', path(keys.twice), { enabled: false }));
    expectDeferred(await other.call('PATCH', path(keys.twice), { enabled: true, allowedIps: ['192.0.2.1'] }));
    expectDeferred(await admin.call('PATCH', '/rate-limit/limited', { limit: 1 }));

    for (const key of [keys.deleted, keys.disabled, keys.rotated]) await untilRejected(key.secret);
    for (const url of urls) {
      await until(async () => (await statusOf(url, rotated.body.secret)) === 200);
      await until(async () => (await statusOf(url, keys.twice.secret)) === 403);
      await until(async () => (await statusOf(url, keys.limited.secret)) === 429);
      expect(await statusOf(url, keys.kept.secret)).toBe(200);
    }
    for (const { opsUrl } of fleet.replicas) await until(async () => ((await waitingAt(opsUrl)) ?? 0) >= 5);
    const all = await admin.call('GET', '/api-keys/usage');
    const one = await other.call('GET', `${path(keys.kept)}/usage`);
    for (const { status, body } of [all, one]) {
      expect(status).toBe(200);
      expect(Date.parse(body.completeUntil)).toBeLessThan(Date.now());
    }

    const returned = await world.returnWithSaved(async (client) => {
      expect(await client.get(`tg:{${keys.deleted.id}}:version`)).toMatch(/^\d/);
    });
    for (const { opsUrl } of fleet.replicas) await until(async () => (await waitingAt(opsUrl)) === 0);
    expect(await returned.get(`tg:{${keys.deleted.id}}:version`)).toBe('-');
    await untilDegraded(fleet.replicas, keys.kept.secret, false);
    for (const url of urls) {
      for (const key of [keys.deleted, keys.disabled, keys.rotated])
        expect(await statusOf(url, key.secret)).toBe(401);
      expect(await statusOf(url, rotated.body.secret)).toBe(200);
      expect(await statusOf(url, keys.twice.secret)).toBe(403);
    }
    // Its connection for changes may be back a little later than the one for decisions.
    await until(async () => {
      const { status, headers } = await admin.call('PATCH', path(keys.kept), { enabled: false });
      return status === 200 && !headers.has('tollgate-applies-within');
    });
    await untilRejected(keys.kept.secret);
  });

  it('are published by a replica that can reach Redis when the one that made them can not', async () => {
    const { ways, redis, admins } = world;
    const { deleted } = await makeKeys(['deleted']);
    ways[0].silence();
    expectDeferred(await admins[0].call('DELETE', `/consumer-api-key/${deleted.id}`));
    const direct = new Redis(redis.url);
    stops.push(async () => direct.disconnect());
    await until(async () => (await direct.get(`tg:{${deleted.id}}:version`)) === '-');
    await untilRejected(deleted.secret);
  });

  it('are found by a replica that slept through them', async () => {
    const { fleet, redis, admins, urls } = world;
    const { deleted, kept } = await makeKeys(['deleted', 'kept']);
    redis.kill('SIGKILL');
    await untilDegraded(fleet.replicas, kept.secret, true);
    const [, sleeper] = fleet.replicas;
    if (sleeper === undefined) throw new Error('no replica');
    process.kill(sleeper.pid, 'SIGSTOP');
    try {
      expectDeferred(await admins[0].call('DELETE', `/consumer-api-key/${deleted.id}`));
      await until(async () => (await statusOf(urls[0], deleted.secret)) === 401);
      // The sleeper must have missed more than two seconds; it counts them itself.
      const asleepUntil = performance.now() + 2500;
      await until(() => performance.now() > asleepUntil);
    } finally {
      process.kill(sleeper.pid, 'SIGCONT');
    }
    await until(async () => (await statusOf(urls[1], deleted.secret)) === 401);
  });
});
