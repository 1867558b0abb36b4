import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { statusOf } from '../support/burst.ts';
import { isAlive } from '../support/gateway.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { type RedisFleet, startInProcessRedisFleet, untilDegraded } from './support/redis-fleet.ts';
import { type SteadyLoad, startLoad } from './support/steady-load.ts';

const LIMIT = 1_000_000;
/** One for each client: its request may have been counted without a response when Redis stopped. */
const CLIENTS = 4;

let directory: string;
let server: RedisServer;
let fleet: RedisFleet;

/** Redis as the docs have it: an AOF with `everysec`. */
function startRedis(port?: number): Promise<RedisServer> {
  const kept = ['--dir', directory, '--appendonly', 'yes', '--appendfsync', 'everysec'];
  return startRedisServer(port === undefined ? kept : [...kept, '--port', String(port)]);
}

/** As a package manager does it: the old server is stopped, and the new one starts on what it left. */
async function upgradeRedis(): Promise<void> {
  const old = server;
  old.kill('SIGTERM');
  await until(() => !isAlive(old.pid));
  await old.stop();
  server = await startRedis(old.port);
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-redis-upgrade-'));
  server = await startRedis();
  const settings = { REDIS_URL: server.url, REDIS_TIMEOUT_MS: '5000' };
  fleet = await startInProcessRedisFleet([settings, settings]);
});
afterAll(async () => {
  await fleet?.stop();
  await server?.stop();
  await rm(directory, { recursive: true, force: true });
});

describe('a Redis that is upgraded in place', () => {
  it('under load costs no request, no count and no usage', async () => {
    await fleet.admin.makePlan('large', LIMIT, 'day');
    await fleet.admin.makePlan('small', 3, 'day');
    const { id, secret } = await fleet.admin.makeKey('large', 'large');
    const used = await fleet.admin.makeKey('used up', 'small');
    const deleted = await fleet.admin.makeKey('deleted', 'large');
    const [url = '', other = ''] = fleet.replicas.map((replica) => replica.url);
    for (let sent = 0; sent < 3; sent += 1) expect(await statusOf(url, used.secret)).toBe(200);
    for (const each of [url, other]) expect(await statusOf(each, deleted.secret)).toBe(200);
    await fleet.admin.deleteKey(deleted.id);

    const loads: readonly SteadyLoad[] = [url, other].map((each) =>
      startLoad(each, secret, [{ method: 'GET', path: '/', clients: CLIENTS / 2 }]),
    );
    const sent = () => loads.reduce((sum, load) => sum + load.responses(), 0);
    await until(() => sent() > 200);
    await upgradeRedis();
    const before = sent();
    await until(() => sent() > before + 200);
    const reports = await Promise.all(loads.map((load) => load.stop()));
    expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
    await untilDegraded(fleet.replicas, used.secret, false);

    for (const each of [url, other]) {
      expect(await statusOf(each, used.secret)).toBe(429);
      expect(await statusOf(each, deleted.secret)).toBe(401);
    }
    // Usage has its own connection, which may be back a moment later.
    await until(async () => (await fleet.admin.call('GET', `/consumer-api-key/${id}`)).status === 200);
    const detail = async () => (await fleet.admin.detail(id)).usage;
    await until(async () => (await detail()).totalRequests === sent());
    await until(async () => LIMIT - (await detail()).rateLimits.remaining >= sent() - CLIENTS);
    expect(LIMIT - (await detail()).rateLimits.remaining).toBeLessThanOrEqual(sent());
  });
});
