import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Admin, type Managed } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { metric } from './support/probe.ts';
import { startInProcessRedisFleet, startRedisFleet, untilDegraded } from './support/redis-fleet.ts';
import { type FleetKey, ROOMY_LIMIT, startTwoWays, type TwoWays } from './support/two-ways.ts';

/** Two replicas, each with its own way to Redis, which keeps its data on disk. */
interface World extends TwoWays {
  readonly admins: readonly [Admin, Admin];
  readonly redis: RedisServer;
  /** Writes the data of Redis to disk, as it is now. */
  save(): Promise<void>;
  /** A new server with what was saved, if anything. Calls `look` before both ways lead to it. */
  returnWithSaved(look: (returned: Redis) => Promise<void>): Promise<Redis>;
}

describe('changes while Redis is away', () => {
  let stops: (() => Promise<unknown>)[];
  let world: World;

  beforeEach(() => {
    stops = [];
  });
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop();
  });

  async function startServer(args: readonly string[]): Promise<RedisServer> {
    const server = await startRedisServer(args);
    // The last one of all: a replica writes usage as it stops.
    stops.unshift(() => server.stop());
    return server;
  }

  async function startWorld(startFleet = startInProcessRedisFleet): Promise<void> {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-redis-'));
    stops.push(() => rm(directory, { recursive: true, force: true }));
    const onDisk = ['--dir', directory];
    const redis = await startServer(onDisk);
    const twoWays = await startTwoWays(redis, { stops, startFleet });
    const { ways, urls } = twoWays;
    const direct = (server: RedisServer): Redis => {
      const client = new Redis(server.url);
      client.on('error', () => {});
      stops.push(async () => client.disconnect());
      return client;
    };
    const saving = direct(redis);
    world = {
      ...twoWays,
      redis,
      admins: [new Admin(urls[0]), new Admin(urls[1])],
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

  function expectDeferred({ status, headers }: Managed): void {
    expect({ status, within: headers.get('tollgate-applies-within') }).toEqual({ status: 200, within: '3' });
  }

  /** Until each of the secrets gets this status from both replicas. */
  async function untilStatus(secrets: readonly string[], status: number): Promise<void> {
    for (const url of world.urls)
      for (const secret of secrets) await until(async () => (await statusOf(url, secret)) === status);
  }

  async function untilRejected(secret: string): Promise<void> {
    await untilStatus([secret], 401);
  }

  async function waitingAt(opsUrl: string | undefined): Promise<number | undefined> {
    return metric(opsUrl ?? '', 'tollgate_changes_waiting');
  }

  it('hold on every replica, and still after Redis returned with older data', async () => {
    await startWorld();
    const { fleet, redis, admins, urls } = world;
    const keys = await world.makeKeys(['deleted', 'disabled', 'rotated', 'twice', 'limited', 'kept']);
    await world.save();
    redis.kill('SIGKILL');
    await untilDegraded(fleet.replicas, keys.kept.secret, true);

    const [admin, other] = admins;
    const path = (key: FleetKey) => `/consumer-api-key/${key.id}`;
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

  it('hold whichever way they are made, and still after Redis returned empty', async () => {
    await startWorld();
    const { fleet, redis, admins, urls } = world;
    const [admin, other] = admins;
    const keys = await world.makeKeys(['graced', 'given-up', 'taken-over', 'replaced', 'kept']);
    const path = (key: FleetKey) => `/consumer-api-key/${key.id}`;
    const rotate = async (key: FleetKey, graceSeconds: number) => {
      const rotated = await admin.call('POST', `${path(key)}/rotate`, { graceSeconds });
      return { ...rotated, secret: String(rotated.body.secret) };
    };
    const givenUp = await rotate(keys['given-up'], 3600);
    const takenOver = await rotate(keys['taken-over'], 3600);
    const moving = newSecret();
    const { body: imported } = await admin.call('POST', '/api-keys/import', { keys: [importOf(moving)] });
    const { body: applied } = await admin.call(
      'POST',
      '/tollgate/config/apply',
      configOf(ROOMY_LIMIT, ['declared', 'pruned']),
    );
    const secretOf = (name: string): string =>
      applied.secrets.find(({ externalId }: { externalId: string }) => externalId === name).secret;
    const [declared, pruned] = [secretOf('declared'), secretOf('pruned')];
    const coming = newSecret();
    await untilStatus([givenUp.secret, takenOver.secret, moving, declared, pruned], 200);
    await untilStatus([coming], 401);
    redis.kill('SIGKILL');
    await untilDegraded(fleet.replicas, keys.kept.secret, true);

    // A new key has no other version anywhere: it works at once, and so the responses need not say more.
    const added = await admin.call('POST', '/api-keys/import', { keys: [importOf(coming)] });
    expect(added.body.results).toEqual([{ index: 0, consumerApiKeyId: expect.any(String) }]);
    for (const url of urls) expect(await statusOf(url, coming)).toBe(200);
    expectDeferred(await admin.call('DELETE', `/consumer-api-key/${imported.results[0].consumerApiKeyId}`));
    const again = await other.call('POST', '/api-keys/import', {
      keys: [{ ...importOf(moving), allowedIps: ['192.0.2.1'] }],
    });
    expect(again.body.results).toEqual([{ index: 0, consumerApiKeyId: expect.any(String) }]);
    expectDeferred(await other.call('POST', '/tollgate/config/apply', configOf(1, ['declared'])));
    expectDeferred(await admin.call('POST', `${path(keys['given-up'])}/end-rotation`, { keep: 'previous' }));
    expectDeferred(await other.call('POST', `${path(keys['taken-over'])}/end-rotation`, { keep: 'new' }));
    const graced = await rotate(keys.graced, 1);
    expectDeferred(graced);
    await admin.makePlan('narrow', 1, 'day');
    expectDeferred(await admin.call('DELETE', '/rate-limit/replaced?rebindTo=narrow'));

    const rejected = [pruned, givenUp.secret, keys['taken-over'].secret, keys.graced.secret];
    const allowed = [coming, keys['given-up'].secret, takenOver.secret, graced.secret, keys.kept.secret];
    const limited = [declared, keys.replaced.secret];
    await untilStatus(rejected, 401);
    await untilStatus(allowed, 200);
    await untilStatus(limited, 429);
    await untilStatus([moving], 403);

    await world.returnWithSaved(async (client) => expect(await client.dbsize()).toBe(0));
    await untilDegraded(fleet.replicas, keys.kept.secret, false);
    for (const { opsUrl } of fleet.replicas) await until(async () => (await waitingAt(opsUrl)) === 0);
    // Redis counts anew, so one request of each is allowed.
    await untilStatus(limited, 429);
    for (const url of urls) {
      for (const secret of rejected) expect(await statusOf(url, secret)).toBe(401);
      for (const secret of allowed) expect(await statusOf(url, secret)).toBe(200);
      expect(await statusOf(url, moving)).toBe(403);
    }
  });

  it('are published by a replica that can reach Redis when the one that made them can not', async () => {
    await startWorld();
    const { ways, redis, admins } = world;
    const { deleted } = await world.makeKeys(['deleted']);
    ways[0].silence();
    expectDeferred(await admins[0].call('DELETE', `/consumer-api-key/${deleted.id}`));
    const direct = new Redis(redis.url);
    stops.push(async () => direct.disconnect());
    await until(async () => (await direct.get(`tg:{${deleted.id}}:version`)) === '-');
    await untilRejected(deleted.secret);
    ways[0].pass();
  });

  it('are known to a replica that slept through them before its first response', async () => {
    await startWorld(startRedisFleet);
    const { fleet, redis, admins, urls } = world;
    const { deleted, kept } = await world.makeKeys(['deleted', 'kept']);
    redis.kill('SIGKILL');
    await untilDegraded(fleet.replicas, kept.secret, true);
    const sleeper = Number(/"pid":(\d+)/.exec(fleet.replicas[1]?.output() ?? '')?.[1]);
    let waking: Promise<readonly number[]> = Promise.resolve([]);
    process.kill(sleeper, 'SIGSTOP');
    try {
      expectDeferred(await admins[0].call('DELETE', `/consumer-api-key/${deleted.id}`));
      // The sleeper must have missed the whole bound; it counts that itself.
      const asleepUntil = performance.now() + 3000;
      await until(async () => (await statusOf(urls[0], deleted.secret)) === 401);
      await until(() => performance.now() > asleepUntil);
      // They arrive before it looks what was changed.
      waking = Promise.all(Array.from({ length: 8 }, () => statusOf(urls[1], deleted.secret)));
    } finally {
      process.kill(sleeper, 'SIGCONT');
    }
    expect(new Set(await waking)).toEqual(new Set([401]));
    expect(await statusOf(urls[1], deleted.secret)).toBe(401);
  });
});

function newSecret(): string {
  return randomBytes(24).toString('base64url');
}

/** A key to import, known by the digest of its secret. */
function importOf(secret: string) {
  const value = createHash('sha256').update(secret).digest('hex');
  return { name: 'imported', secretHash: { algorithm: 'sha256', value } };
}

/** A plan, and a key under it for each of the names. Keys of an earlier one that are not named are deleted. */
function configOf(limit: number, names: readonly string[]) {
  return {
    ...{ owner: 'outage', prune: true },
    config: {
      plans: [{ rateLimitId: 'declared', limit, period: 'day' }],
      keys: names.map((name) => ({ externalId: name, name, rateLimitId: 'declared' })),
    },
  };
}
