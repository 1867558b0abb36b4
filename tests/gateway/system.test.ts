import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { copyRecordsInto } from '../support/data-directory.ts';
import { type Fleet, startInProcessFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, ROOT_TOKEN, type RunningGateway, startGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

/** Where the fleet's own replica is not seen: over relays to its Postgres, and to a Redis of its own. */
let environment: Readonly<Record<string, string>>;
let fleet: Fleet;
let gateway: RunningGateway;
let redis: RedisServer;
let redisRelay: TcpRelay;
let postgresRelay: TcpRelay;

beforeAll(async () => {
  [fleet, redis] = await Promise.all([startInProcessFleet(1), startRedisServer()]);
  redisRelay = await TcpRelay.start(redis.port);
  postgresRelay = await TcpRelay.start(portOf(fleet.databaseUrl));
  environment = {
    ...fleet.environment,
    DATABASE_URL: postgresRelay.urlOf(fleet.databaseUrl),
    REDIS_URL: redisRelay.urlOf(redis.url),
    REDIS_TIMEOUT_MS: '500',
  };
  gateway = await startInProcess(environment);
});
afterAll(async () => {
  await gateway?.stop();
  await fleet?.stop();
  await Promise.all([redisRelay?.stop(), postgresRelay?.stop(), redis?.stop()]);
});

const cleanUps: (() => Promise<unknown>)[] = [];
function ends<Started>(started: Started, end: (started: Started) => Promise<unknown>): Started {
  cleanUps.push(() => end(started));
  return started;
}
afterEach(async () => {
  redisRelay.pass(redis.port);
  postgresRelay.pass(portOf(fleet.databaseUrl));
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  await untilSystem(gateway, ({ degraded, replicas }) => degraded.length === 0 && replicas.length === 1);
});

interface System {
  readonly degraded: readonly string[];
  readonly replicas: readonly (Readonly<Record<string, unknown>> & { readonly replicaId: string })[];
  readonly liveReplicas: number | null;
  readonly stores: {
    readonly postgres: Readonly<Record<string, unknown>>;
    readonly redis: Readonly<Record<string, unknown>> | null;
  };
  readonly usage: Readonly<Record<string, unknown>>;
  readonly backend: Readonly<Record<string, unknown>>;
}

async function systemOf({ url }: Pick<RunningGateway, 'url'>): Promise<System> {
  const response = await fetch(`${url}/tollgate/system`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  // The test stores' URLs have this password.
  expect(text).not.toContain('postgres:postgres@');
  return JSON.parse(text) as System;
}

/** A replica says of itself that which its last check of the stores has found. */
async function untilSystem(
  of: Pick<RunningGateway, 'url'>,
  claim: (system: System) => boolean,
): Promise<System> {
  let system = await systemOf(of);
  await until(async () => {
    system = await systemOf(of);
    return claim(system);
  });
  return system;
}

describe('GET /tollgate/system', () => {
  it('shows every live replica, and the stores and the backend as they are', async () => {
    const second = ends(await startGateway(environment), ({ stop }) => stop());
    const [own, others] = [await systemOf(gateway), await systemOf(second)];
    const system = await untilSystem(
      gateway,
      ({ replicas }) => replicas.length === 2 && replicas.every(({ degraded }) => String(degraded) === ''),
    );
    const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const said = { lastSeenAt: instant, startedAt: instant, version: expect.any(String), workers: 1 };
    expect(system.replicas).toEqual([
      expect.objectContaining({ ...said, current: true, pid: process.pid }),
      expect.objectContaining({ ...said, current: false, pid: second.pid }),
    ]);
    expect(own.replicas[0]?.replicaId).not.toBe(others.replicas[0]?.replicaId);
    expect(system).toMatchObject({
      degraded: [],
      liveReplicas: 2,
      stores: {
        postgres: {
          reachable: true,
          latencyMs: expect.any(Number),
          fault: null,
          embedded: false,
          version: expect.stringMatching(/^\d+/),
          migrations: { applied: expect.arrayContaining(['0001_records']), pending: [] },
        },
        redis: {
          reachable: true,
          latencyMs: expect.any(Number),
          fault: null,
          mode: 'single',
          servers: [
            {
              address: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
              version: expect.stringMatching(/^\d+\./),
              role: 'master',
              evictionPolicy: 'noeviction',
              appendOnly: expect.any(Boolean),
            },
          ],
        },
      },
      backend: { reachable: true, latencyMs: expect.any(Number), fault: null },
    });
  });

  it('takes a replica off the list that has stopped', async () => {
    const second = ends(await startInProcess(environment), ({ stop }) => stop());
    await untilSystem(gateway, ({ replicas }) => replicas.length === 2);
    await second.stop();
    const system = await systemOf(gateway);
    expect(system.replicas.map(({ current }) => current)).toEqual([true]);
    expect(system.liveReplicas).toBe(1);
  });

  it('says while Redis does not respond that it does not, and shows this replica', async () => {
    redisRelay.reject();
    const system = await untilSystem(gateway, ({ stores }) => stores.redis?.reachable === false);
    expect(system.degraded).toContain('redis');
    expect(system.degraded).not.toContain('postgres');
    expect(system.liveReplicas).toBeNull();
    expect(system.replicas).toEqual([expect.objectContaining({ pid: process.pid, current: true })]);
    expect(system.stores.redis).toMatchObject({
      latencyMs: null,
      fault: expect.stringContaining('connect'),
      servers: [],
    });
    expect(system.stores.postgres).toMatchObject({ reachable: true, fault: null });
    expect(system.usage).toMatchObject({ oldestPendingAt: null, pendingSeconds: null });
  });

  it('responds while Redis hangs', async () => {
    redisRelay.silence();
    const system = await untilSystem(gateway, ({ stores }) => stores.postgres.reachable === true);
    expect(system.stores.redis).toMatchObject({ reachable: false, latencyMs: null });
    expect(system.stores.postgres).toMatchObject({ reachable: true });
  });

  it('says while Postgres does not respond that it does not', async () => {
    postgresRelay.reject();
    const system = await untilSystem(
      gateway,
      ({ stores, liveReplicas }) =>
        String(stores.postgres.fault).includes('connect') &&
        stores.redis?.fault === null &&
        liveReplicas === 1,
    );
    expect(system.degraded).toContain('postgres');
    expect(system.stores.postgres).toMatchObject({
      reachable: false,
      latencyMs: null,
      fault: expect.stringContaining('connect'),
      version: null,
      migrations: null,
    });
    expect(system.stores.redis).toMatchObject({ reachable: true, fault: null });
    expect(system.liveReplicas).toBe(1);
  });

  it('says that there is no connection to the backend', async () => {
    const port = await freePort();
    const { environment: settings } = fleet;
    const other = ends(
      await startInProcess({ ...settings, BACKEND_URL: `http://127.0.0.1:${port}` }),
      ({ stop }) => stop(),
    );
    const system = await systemOf(other);
    expect(system.degraded).toEqual(['backend']);
    expect(system.backend).toEqual({
      reachable: false,
      latencyMs: null,
      fault: 'connection refused: nothing listens at that address and port',
      address: `127.0.0.1:${port}`,
    });
  });

  it('shows a replica of an older version that says nothing of itself', async () => {
    const client = ends(new Redis(redis.url), async (one) => {
      await one.zrem('tg:replicas', 'older');
      one.disconnect();
    });
    await client.zadd('tg:replicas', Date.now(), 'older');
    await client.set(
      'tg:replica:older',
      '{"version":7,"degraded":["redis","what is that"],"startedAtMs":1e99}',
    );
    const { replicas } = await systemOf(gateway);
    const nothing = { version: null, host: null, pid: null, workers: null, startedAt: null };
    expect(replicas[1]).toMatchObject({ ...nothing, replicaId: 'older', degraded: ['redis'] });
    await client.set('tg:replica:older', 'no JSON');
    expect((await systemOf(gateway)).replicas[1]).toMatchObject({ ...nothing, degraded: null });
  });

  it('shows no replica whose heartbeat is at no instant, and soon counts none', async () => {
    const client = ends(new Redis(redis.url), async (one) => one.disconnect());
    await client.zadd('tg:replicas', 9e15, 'far', '+inf', 'never');
    expect((await systemOf(gateway)).replicas.map(({ current }) => current)).toEqual([true]);
    await untilSystem(gateway, ({ liveReplicas }) => liveReplicas === 1);
  });

  it('shows a process that keeps everything itself as the only replica', async () => {
    const directory = ends(await mkdtemp(join(tmpdir(), 'tollgate-system-')), (path) =>
      rm(path, { recursive: true, force: true }),
    );
    await copyRecordsInto(directory);
    const backend = fleet.environment.BACKEND_URL ?? '';
    const alone = ends(
      await startInProcess({ BACKEND_URL: backend, DATA_DIR: directory, ROOT_TOKEN, ENCRYPTION_KEY }),
      ({ stop }) => stop(),
    );
    const system = await systemOf(alone);
    expect(system).toMatchObject({
      degraded: [],
      liveReplicas: 1,
      replicas: [{ replicaId: 'embedded', current: true, pid: process.pid, degraded: [] }],
      stores: { postgres: { embedded: true, reachable: true, migrations: { pending: [] } }, redis: null },
      usage: { pendingSeconds: expect.any(Number) },
    });
  });
});
