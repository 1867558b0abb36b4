import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Admin } from '../support/admin.ts';
import { burst, statusOf } from '../support/burst.ts';
import { type GatewayProcess, gatewaySettings, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { type LastRelease, lastRelease } from '../support/last-release.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createTestDatabase, type TestDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

const LIMIT = 40;
/** Between a response and the next request of a client, so that the servers have the machine to themselves for the most part. */
const PAUSE_MS = 20;

let release: LastRelease;
let redis: RedisServer;
let backend: TestBackend;

beforeAll(async () => {
  release = await lastRelease();
  redis = await startRedisServer();
  backend = await startBackend();
});
afterAll(async () => {
  await backend?.stop();
  await redis?.stop();
  await release?.remove();
});

/** Steady requests, over replicas that may become more meanwhile. */
class Load {
  readonly urls: string[] = [];
  readonly statuses = new Map<number, number>();
  readonly #secret: string;
  readonly #clients: Promise<void>;
  #isOver = false;

  constructor(url: string, secret: string) {
    this.urls.push(url);
    this.#secret = secret;
    this.#clients = Promise.all([this.#send(), this.#send()]).then(() => {});
  }

  get total(): number {
    return [...this.statuses.values()].reduce((sum, count) => sum + count, 0);
  }

  async more(count: number): Promise<void> {
    const before = this.total;
    await until(() => this.total >= before + count);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  async #send(): Promise<void> {
    for (let sent = 0; !this.#isOver; sent += 1) {
      const status = await statusOf(this.urls[sent % this.urls.length] ?? '', this.#secret);
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      await wait(PAUSE_MS);
    }
  }
}

describe.each([
  ['the last release, then the present one beside it', 'upgrade'],
  ['the present version, then the last release beside it', 'downgrade'],
])('%s', (_order, direction) => {
  let database: TestDatabase;
  let settings: Readonly<Record<string, string>>;
  const running: GatewayProcess[] = [];

  beforeAll(async () => {
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
    database = await createTestDatabase();
    settings = gatewaySettings(backend.url, database.url, redis.url);
  });
  afterAll(async () => {
    await Promise.all(running.map((gateway) => gateway.stop()));
    await database?.drop();
  });

  async function start(version: 'last' | 'present'): Promise<GatewayProcess> {
    // Who comes second beside a newer schema finds its tables there, as in production, where no replica migrates at its start.
    const isSecond = running.length > 0;
    const migrates = version === 'present' || !isSecond;
    const gateway = await startGateway(
      { ...settings, AUTO_MIGRATE: String(migrates) },
      version === 'last' ? { main: release.main } : {},
    );
    running.push(gateway);
    return gateway;
  }

  it('serve, limit, change and count together', async () => {
    const isUpgrade = direction === 'upgrade';
    const first = await start(isUpgrade ? 'last' : 'present');
    const [here, admins] = [new Admin(first.url), [new Admin(first.url)]];
    await here.makePlan('wide', 1_000_000_000, 'hour');
    await here.makePlan('narrow', LIMIT, 'hour');
    const busy = await here.makeKey('busy', 'wide');
    const load = new Load(first.url, busy.secret);
    try {
      await load.more(50);

      const second = await start(isUpgrade ? 'present' : 'last');
      const there = new Admin(second.url);
      admins.push(there);
      load.urls.push(second.url);
      await load.more(200);

      // A key of either is valid at the other, and a deleted one at neither.
      for (const [maker, other] of [
        [here, second],
        [there, first],
      ] as const) {
        const { id, secret } = await maker.makeKey('shared', 'wide');
        expect(await statusOf(other.url, secret)).toBe(200);
        expect((await maker.call('DELETE', `/consumer-api-key/${id}`)).status).toBe(200);
        await until(async () => (await statusOf(other.url, secret)) === 401);
      }

      // No version allows more than the limit, whatever the other has counted.
      const { secret } = await there.makeKey('limited', 'narrow');
      const { 200: allowed = 0 } = await burst([first.url, second.url], {
        secret,
        requests: 200,
        inFlight: 4,
      });
      expect(allowed).toBeGreaterThanOrEqual(LIMIT);
      expect(allowed).toBeLessThanOrEqual(2 * LIMIT);
    } finally {
      await load.stop();
    }
    expect([...load.statuses.keys()]).toEqual([200]);
    for (const admin of admins) {
      await until(async () => (await admin.detail(busy.id)).usage.totalRequests === load.total);
    }
  });

  it('end without an error, and nothing that was counted is lost', async () => {
    expect(await Promise.all(running.splice(0).map((gateway) => gateway.stop()))).toEqual([0, 0]);
  });
});

describe('a replica of the last release beside one of the present version', () => {
  let database: TestDatabase;
  const running: GatewayProcess[] = [];
  let last: GatewayProcess;
  let present: GatewayProcess;
  let lastAdmin: Admin;
  let presentAdmin: Admin;

  beforeAll(async () => {
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
    database = await createTestDatabase();
    const settings = {
      ...gatewaySettings(backend.url, database.url, redis.url),
      AUTO_MIGRATE: 'true',
    };
    last = await startGateway(settings, { main: release.main });
    running.push(last);
    present = await startGateway(settings);
    running.push(present);
    [lastAdmin, presentAdmin] = [new Admin(last.url), new Admin(present.url)];
  }, 120_000);
  afterAll(async () => {
    await Promise.all(running.map((gateway) => gateway.stop()));
    await database?.drop();
  });

  async function must(admin: Admin, [method, path]: readonly [string, string], body?: object) {
    const response = await admin.call(method, path, body);
    expect([200, 201]).toContain(response.status);
    return response.body;
  }

  /** With a secret at the present version, then at the last release. */
  const statuses = async (secret: string) => [
    await statusOf(present.url, secret),
    await statusOf(last.url, secret),
  ];

  it('knows the new secret of a rotated key, and the previous one no more', async () => {
    const { id, secret: previous } = await lastAdmin.makeKey('rotated beside');
    const rotate = ['POST', `/consumer-api-key/${id}/rotate`] as const;
    const { secret } = await must(presentAdmin, rotate, { graceSeconds: 3600 });
    expect(await statuses(secret)).toEqual([200, 200]);
    expect(await statuses(previous)).toEqual([200, 401]);
    await must(lastAdmin, ['DELETE', `/consumer-api-key/${id}`]);
    expect(await statuses(secret)).toEqual([401, 401]);
    expect(await statuses(previous)).toEqual([401, 401]);
  });

  it('rejects secrets that come from elsewhere, as they are or by their hash', async () => {
    const [given, hashed] = ['a-secret-from-elsewhere-as-it-is', 'a-secret-from-elsewhere-by-hash'];
    const value = createHash('sha256').update(hashed).digest('hex');
    const keys = [
      { name: 'given', secret: given },
      { name: 'hashed', secretHash: { algorithm: 'sha256', value } },
    ];
    await must(presentAdmin, ['POST', '/api-keys/import'], { keys });
    expect(await statuses(given)).toEqual([200, 401]);
    expect(await statuses(hashed)).toEqual([200, 401]);
  });

  it('lets a key with allowedIps be used from anywhere, as the runbook says', async () => {
    const { id, secret } = await lastAdmin.makeKey('restricted');
    await must(presentAdmin, ['PATCH', `/consumer-api-key/${id}`], { allowedIps: ['203.0.113.7'] });
    expect(await statuses(secret)).toEqual([403, 200]);
    // A change there leaves what it doesn't know as it is.
    await must(lastAdmin, ['PATCH', `/consumer-api-key/${id}`], { name: 'renamed there' });
    expect(await presentAdmin.detail(id)).toMatchObject({
      name: 'renamed there',
      allowedIps: ['203.0.113.7'],
    });
    expect(await statusOf(present.url, secret)).toBe(403);
    await must(lastAdmin, ['PATCH', `/consumer-api-key/${id}`], { enabled: false });
    expect(await statuses(secret)).toEqual([401, 401]);
  });

  it('rejects admin tokens, and passes nothing of the new paths on to the backend', async () => {
    const create = ['POST', '/tollgate/admin-token/create'] as const;
    const { secret } = await must(presentAdmin, create, { name: 'a token', scopes: ['read-only'] });
    const received = backend.received();
    for (const credential of [secret, ROOT_TOKEN]) {
      for (const path of ['/consumer-api-key', '/tollgate/whoami', '/tollgate/admin-token']) {
        const headers = { authorization: `Bearer ${credential}` };
        const { status } = await fetch(`${last.url}${path}`, { headers });
        expect(status).toBe(credential === ROOT_TOKEN && path === '/consumer-api-key' ? 200 : 401);
      }
    }
    expect(backend.received()).toBe(received);
  });

  it('makes keys that are found by a search, and whose changes are', async () => {
    const { id } = await lastAdmin.makeKey('Zq made there');
    const found = async (q: string) =>
      (await must(presentAdmin, ['GET', `/consumer-api-key?q=${q}`])).apiKeys.map(
        (key: { consumerApiKeyId: string }) => key.consumerApiKeyId,
      );
    expect([await found('q%20'), await found('made%20there')]).toEqual([[id], [id]]);
    await must(lastAdmin, ['PATCH', `/consumer-api-key/${id}`], { name: 'Xv changed there' });
    expect([await found('q%20'), await found('v%20')]).toEqual([[], [id]]);
  });
});
