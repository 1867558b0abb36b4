import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Admin } from '../support/admin.ts';
import { burst, statusOf } from '../support/burst.ts';
import { ENCRYPTION_KEY, type GatewayProcess, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { type LastRelease, lastRelease } from '../support/last-release.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createTestDatabase, type TestDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

const LIMIT = 40;

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

/** Requests without a pause, over replicas that may become more meanwhile. */
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
    settings = {
      BACKEND_URL: backend.url,
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      REDIS_TIMEOUT_MS: '5000',
      ROOT_TOKEN,
      ENCRYPTION_KEY,
    };
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

      // No version admits more than the limit, whatever the other has counted.
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
