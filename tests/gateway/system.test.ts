import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { freePort } from '../support/free-port.ts';
import { ENCRYPTION_KEY, type GatewayProcess, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
function ends<Started>(started: Started, end: (started: Started) => Promise<unknown>): Started {
  cleanUps.push(() => end(started));
  return started;
}
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
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

async function systemOf({ url }: Pick<GatewayProcess, 'url'>): Promise<System> {
  const response = await fetch(`${url}/tollgate/system`, {
    headers: { authorization: `Bearer ${ROOT_TOKEN}` },
  });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  // The test stores' URLs have this password.
  expect(text).not.toContain('postgres:postgres@');
  return JSON.parse(text) as System;
}

/** A fleet over relays to a Postgres that all tests share and to a Redis of its own. */
async function startRelayed(count: number): Promise<{
  readonly fleet: Fleet;
  readonly gateways: readonly GatewayProcess[];
  readonly postgres: TcpRelay;
  readonly redis: TcpRelay;
}> {
  const fleet = ends(await startFleet(1), ({ stop }) => stop());
  const server = ends(await startRedisServer(), ({ stop }) => stop());
  const portOf = (url: string) => Number(new URL(url).port || 5432);
  const postgres = ends(await TcpRelay.start(portOf(fleet.databaseUrl)), (relay) => relay.stop());
  const redis = ends(await TcpRelay.start(portOf(server.url)), (relay) => relay.stop());
  const environment = {
    ...fleet.environment,
    DATABASE_URL: postgres.urlOf(fleet.databaseUrl),
    REDIS_URL: redis.urlOf(server.url),
    REDIS_TIMEOUT_MS: '500',
  };
  const gateways: GatewayProcess[] = [];
  for (let index = 0; index < count; index += 1)
    gateways.push(ends(await startGateway(environment), ({ stop }) => stop()));
  return { fleet, gateways, postgres, redis };
}

function first<Item>([item]: readonly Item[]): Item {
  if (item === undefined) throw new Error('there is none');
  return item;
}

describe('GET /tollgate/system', () => {
  it('shows every live replica, and the stores and the backend as they are', async () => {
    const { gateways } = await startRelayed(2);
    const replicas = await Promise.all(gateways.map(systemOf));
    // A replica says of itself that which its first check of the stores has found.
    await until(async () => {
      const { replicas: listed } = await systemOf(first(gateways));
      return listed.length === 2 && listed.every(({ degraded }) => String(degraded) === '');
    });
    const system = await systemOf(first(gateways));
    const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const said = { lastSeenAt: instant, startedAt: instant, version: expect.any(String), workers: 1 };
    expect(system.replicas).toEqual([
      expect.objectContaining({ ...said, current: true, pid: gateways[0]?.pid }),
      expect.objectContaining({ ...said, current: false, pid: gateways[1]?.pid }),
    ]);
    expect(new Set(replicas.map(({ replicas: [own] }) => own?.replicaId)).size).toBe(2);
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
    const { gateways } = await startRelayed(2);
    await until(async () => (await systemOf(first(gateways))).replicas.length === 2);
    await gateways[1]?.stop();
    const system = await systemOf(first(gateways));
    expect(system.replicas.map(({ pid }) => pid)).toEqual([gateways[0]?.pid]);
    expect(system.liveReplicas).toBe(1);
  });

  it('says while Redis does not respond that it does not, and shows this replica', async () => {
    const { gateways, redis } = await startRelayed(1);
    redis.reject();
    await until(async () => (await systemOf(first(gateways))).stores.redis?.reachable === false);
    const system = await systemOf(first(gateways));
    expect(system.degraded).toContain('redis');
    expect(system.degraded).not.toContain('postgres');
    expect(system.liveReplicas).toBeNull();
    expect(system.replicas).toEqual([expect.objectContaining({ pid: gateways[0]?.pid, current: true })]);
    expect(system.stores.redis).toMatchObject({
      latencyMs: null,
      fault: expect.stringContaining('connect'),
      servers: [],
    });
    expect(system.stores.postgres).toMatchObject({ reachable: true, fault: null });
    expect(system.usage).toMatchObject({ oldestPendingAt: null, pendingSeconds: null });
  });

  it('responds while Redis hangs', async () => {
    const { gateways, redis } = await startRelayed(1);
    redis.silence();
    const system = await systemOf(first(gateways));
    expect(system.stores.redis).toMatchObject({ reachable: false, latencyMs: null });
    expect(system.stores.postgres).toMatchObject({ reachable: true });
  });

  it('says while Postgres does not respond that it does not', async () => {
    const { gateways, postgres } = await startRelayed(1);
    postgres.reject();
    const system = await systemOf(first(gateways));
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
    const fleet = ends(await startFleet(1, { BACKEND_URL: `http://127.0.0.1:${port}` }), ({ stop }) =>
      stop(),
    );
    const system = await systemOf(first(fleet.replicas));
    expect(system.degraded).toEqual(['backend']);
    expect(system.backend).toEqual({
      reachable: false,
      latencyMs: null,
      fault: 'connection refused: nothing listens at that address and port',
      address: `127.0.0.1:${port}`,
    });
  });

  it('shows a replica of an older version that says nothing of itself', async () => {
    const { gateways, redis } = await startRelayed(1);
    const { Redis } = await import('ioredis');
    const client = ends(new Redis(redis.port), async (one) => one.disconnect());
    await client.zadd('tg:replicas', Date.now(), 'older');
    await client.set(
      'tg:replica:older',
      '{"version":7,"degraded":["redis","what is that"],"startedAtMs":1e99}',
    );
    const { replicas } = await systemOf(first(gateways));
    const nothing = { version: null, host: null, pid: null, workers: null, startedAt: null };
    expect(replicas[1]).toMatchObject({ ...nothing, replicaId: 'older', degraded: ['redis'] });
    await client.set('tg:replica:older', 'no JSON');
    expect((await systemOf(first(gateways))).replicas[1]).toMatchObject({ ...nothing, degraded: null });
  });

  it('shows a process that keeps everything itself as the only replica', async () => {
    const directory = ends(await mkdtemp(join(tmpdir(), 'tollgate-system-')), (path) =>
      rm(path, { recursive: true, force: true }),
    );
    const fleet = ends(await startFleet(1), ({ stop }) => stop());
    const backend = fleet.environment.BACKEND_URL ?? '';
    const gateway = ends(
      await startGateway({ BACKEND_URL: backend, DATA_DIR: directory, ROOT_TOKEN, ENCRYPTION_KEY }),
      ({ stop }) => stop(),
    );
    const system = await systemOf(gateway);
    expect(system).toMatchObject({
      degraded: [],
      liveReplicas: 1,
      replicas: [{ replicaId: 'embedded', current: true, pid: gateway.pid, degraded: [] }],
      stores: { postgres: { embedded: true, reachable: true, migrations: { pending: [] } }, redis: null },
      usage: { pendingSeconds: expect.any(Number) },
    });
  });
});
