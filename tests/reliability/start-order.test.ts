import { afterAll, describe, expect, it } from '@jest/globals';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { gatewaySettings, type RunningGateway } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process-gateway.ts';
import { onRedis } from '../support/on-redis.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createMigratedDatabase, createTestDatabase, testRedisUrl } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { livez, type Readyz, readyz } from './support/probe.ts';
import { startBackend } from './support/test-backend.ts';

const cleanUps: (() => Promise<unknown>)[] = [];

/** What was started is ended in reverse order, whether the tests passed or not. */
function ends<Started>(started: Started, end: (started: Started) => Promise<unknown>): Started {
  cleanUps.push(() => end(started));
  return started;
}

afterAll(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** A gateway that is not waited for until it is ready. */
async function startUnready(databaseUrl: string, redisUrl: string): Promise<RunningGateway> {
  const backend = ends(await startBackend(), ({ stop }) => stop());
  const gateway = await startInProcess(gatewaySettings(backend.url, databaseUrl, redisUrl), {
    isReady: false,
  });
  return ends(gateway, ({ stop }) => stop());
}

async function becomesReady({ opsUrl }: RunningGateway): Promise<void> {
  await until(async () => (await readyz(opsUrl)).status === 200);
}

/** Asks until it shows these reasons at once: a check may have had no response in time. Resolves with all that it showed then. */
async function untilShown(
  { opsUrl }: RunningGateway,
  reasons: Readonly<Record<string, RegExp>>,
): Promise<Readyz> {
  let shown = await readyz(opsUrl);
  await until(async () => {
    shown = await readyz(opsUrl);
    return Object.entries(reasons).every(([name, reason]) => reason.test(shown.components[name] ?? ''));
  });
  return shown;
}

async function serves({ url }: RunningGateway): Promise<void> {
  expect(await statusOf(url, (await new Admin(url).makeKey('first')).secret)).toBe(200);
}

/** What a relay with nothing behind it does to a connection. */
const NOT_THERE = /^(connection|not connected)/;

// Beside each other, because they mostly wait.
describe('a replica that starts', () => {
  it.concurrent('before its stores is live but not ready, and becomes ready with them', async () => {
    const database = ends(await createTestDatabase(), ({ drop }) => drop());
    const postgresRelay = ends(await TcpRelay.start(undefined), (relay) => relay.stop());
    const redisRelay = ends(await TcpRelay.start(undefined), (relay) => relay.stop());
    const redisUrl = testRedisUrl();
    const gateway = await startUnready(postgresRelay.urlOf(database.url), redisRelay.urlOf(redisUrl));

    expect(await livez(gateway.opsUrl)).toBe(200);
    const shown = await untilShown(gateway, { postgres: NOT_THERE, redis: NOT_THERE });
    expect([shown.status, Object.keys(shown.components).toSorted()]).toEqual([503, ['postgres', 'redis']]);
    expect(await statusOf(gateway.url, createSecret('tg', systemRandom))).toBe(503);
    expect((await new Admin(gateway.url).call('GET', '/rate-limit')).status).toBe(503);

    redisRelay.pass(portOf(redisUrl));
    expect((await untilShown(gateway, { postgres: NOT_THERE, redis: /^ok$/ })).status).toBe(503);

    postgresRelay.pass(portOf(database.url));
    await becomesReady(gateway);
    await serves(gateway);
  });

  it.concurrent('far from Redis counts its first request there', async () => {
    const database = ends(await createMigratedDatabase(), ({ drop }) => drop());
    const redisUrl = testRedisUrl();
    const redis = ends(await TcpRelay.start(portOf(redisUrl)), (relay) => relay.stop());
    const near = await startUnready(database.url, redisUrl);
    await becomesReady(near);
    const admin = new Admin(near.url);
    await admin.makePlan('few', 2, 'day');
    const { secret } = await admin.makeKey('first', 'few');
    for (const status of [200, 200, 429]) expect(await statusOf(near.url, secret)).toBe(status);

    redis.delayReplies(100);
    // The ports open after a second at the latest: on a busy machine one start may take longer than that to reach Redis.
    const statuses: number[] = [];
    while (!statuses.includes(429) && statuses.length < 5) {
      const far = await startUnready(database.url, redis.urlOf(redisUrl));
      statuses.push(await statusOf(far.url, secret));
    }
    expect(statuses).toContain(429);
  });

  it.concurrent('while its stores are frozen lives, and becomes ready by itself when they go on', async () => {
    const database = ends(await createMigratedDatabase(), ({ drop }) => drop());
    const postgres = ends(await TcpRelay.start(portOf(database.url)), (relay) => relay.stop());
    const redis = ends(await startRedisServer(), ({ stop }) => stop());
    // Both take connections and say nothing.
    postgres.silence();
    redis.pause();
    const gateway = await startUnready(postgres.urlOf(database.url), redis.url);
    expect(await livez(gateway.opsUrl)).toBe(200);
    await until(async () => {
      const { status, components } = await readyz(gateway.opsUrl);
      return status === 503 && components.postgres === 'no response in time' && components.redis !== 'ok';
    });
    expect(await statusOf(gateway.url, createSecret('tg', systemRandom))).toBe(503);

    redis.resume();
    await until(async () => (await readyz(gateway.opsUrl)).components.redis === 'ok');
    expect((await readyz(gateway.opsUrl)).status).toBe(503);

    postgres.pass();
    await becomesReady(gateway);
    await serves(gateway);
  });

  it.concurrent('with a Redis that evicts says so, and becomes ready once it does not', async () => {
    const database = ends(await createMigratedDatabase(), ({ drop }) => drop());
    const server = ends(await startRedisServer(['--maxmemory-policy', 'allkeys-lru']), ({ stop }) => stop());
    const gateway = await startUnready(database.url, server.url);
    const reason =
      'Redis evicts keys (maxmemory-policy allkeys-lru), so counts can be lost: set it to noeviction';

    await until(async () => (await readyz(gateway.opsUrl)).components.redis === reason);
    await until(async () => (await readyz(gateway.opsUrl)).components.postgres === 'ok');
    expect((await readyz(gateway.opsUrl)).status).toBe(503);
    expect(await livez(gateway.opsUrl)).toBe(200);
    await until(() => gateway.output().includes(reason));

    await onRedis(server.url, (redis) => redis.config('SET', 'maxmemory-policy', 'noeviction'));
    await becomesReady(gateway);
    await serves(gateway);
  });

  it.concurrent('with a Redis before version 7 says so, and does not become ready', async () => {
    const database = ends(await createMigratedDatabase(), ({ drop }) => drop());
    const redisUrl = testRedisUrl();
    const old = ends(await TcpRelay.start(portOf(redisUrl), { rewrite: withOldVersion }), (relay) =>
      relay.stop(),
    );
    const gateway = await startUnready(database.url, old.urlOf(redisUrl));

    const redis = /^Redis 6[.\d]+ is too old: version 7 or newer is needed$/;
    expect((await untilShown(gateway, { postgres: /^ok$/, redis })).status).toBe(503);
    await until(() => gateway.output().includes(' is too old: version 7 or newer is needed'));
  });
});

/** A Redis of that age is not to be had everywhere: a newer one is made to claim it, in a response of the same length. */
function withOldVersion(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').replace(/^redis_version:\d/m, 'redis_version:6'), 'latin1');
}
