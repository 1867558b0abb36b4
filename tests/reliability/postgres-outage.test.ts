import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { type GatewayProcess, gatewaySettings, startGateway } from '../support/gateway.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { testRedisUrl } from '../support/stores.ts';
import { portOf, TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';
import { readyz } from './support/probe.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

let postgres: PostgresServer;
let relay: TcpRelay;
let backend: TestBackend;
let gateway: GatewayProcess;
let admin: Admin;
let cached: string;

/** A key that this replica has not seen yet. */
const newKey = async (): Promise<string> => (await admin.makeKey('new')).secret;
const unknownKey = (): string => createSecret('tg', systemRandom);
const managed = async (): Promise<number> => (await admin.call('GET', '/consumer-api-key')).status;

async function asSuperuser(work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  postgres = await startPostgresServer();
  relay = await TcpRelay.start(portOf(postgres.url));
  backend = await startBackend();
  await asSuperuser(async (client) => {
    await client.query("CREATE ROLE gateway LOGIN PASSWORD 'gateway'");
    await client.query('CREATE DATABASE gateway OWNER gateway');
  });
  const url = new URL(relay.urlOf(postgres.url));
  url.username = 'gateway';
  url.password = 'gateway';
  url.pathname = '/gateway';
  gateway = await startGateway(gatewaySettings(backend.url, url.href, testRedisUrl()));
  admin = new Admin(gateway.url);
  cached = await newKey();
  expect(await statusOf(gateway.url, cached)).toBe(200);
});

afterAll(async () => {
  const code = await gateway?.stop();
  await backend?.stop();
  await relay?.stop();
  await postgres?.stop();
  const faults = gateway?.output().match(/^.*could not be stopped cleanly.*$/gm);
  expect({ code, faults }).toEqual({ code: 0, faults: null });
});

/** What is said of a server that is not running. */
const NOT_THERE = /^(connection refused|connection reset|not connected)/;

/** The status, and when the client is to come back. */
async function rejectionOf(secret: string): Promise<string> {
  const response = await fetch(gateway.url, { headers: { authorization: `Bearer ${secret}` } });
  await response.arrayBuffer();
  return `${response.status}, again after ${response.headers.get('retry-after')} s`;
}

/** What holds in every outage of Postgres, and after it. */
async function goesOnWithoutPostgres(newSecret: string): Promise<void> {
  const [known, unknown, management, ...served] = await Promise.all([
    rejectionOf(newSecret),
    rejectionOf(unknownKey()),
    admin.call('GET', '/consumer-api-key'),
    ...Array.from({ length: 20 }, () => statusOf(gateway.url, cached)),
  ]);
  expect([known, unknown]).toEqual(['503, again after 1 s', '503, again after 1 s']);
  expect(management.status).toBe(503);
  expect(management.body.code).toBe('store_unavailable');
  expect(new Set(served)).toEqual(new Set([200]));
}

async function isBack(newSecret: string): Promise<void> {
  await until(async () => (await managed()) === 200);
  expect(await statusOf(gateway.url, newSecret)).toBe(200);
  expect(await statusOf(gateway.url, unknownKey())).toBe(401);
  expect(await statusOf(gateway.url, cached)).toBe(200);
  await until(async () => (await readyz(gateway.opsUrl)).components.postgres === 'ok');
}

describe('a replica whose Postgres', () => {
  it('is stopped serves cached keys, gives others 503, and recovers by itself', async () => {
    const secret = await newKey();
    // So that several connections are idle.
    await Promise.all(Array.from({ length: 20 }, () => managed()));
    await postgres.halt();
    // Whoever reads the log must not learn how to cancel our queries.
    await until(() => gateway.output().includes('an idle Postgres connection broke'));
    expect(gateway.output()).not.toContain('secretKey');
    await goesOnWithoutPostgres(secret);
    // The last check may have met a server that was shutting down.
    await until(async () => NOT_THERE.test((await readyz(gateway.opsUrl)).components.postgres ?? ''));
    expect(gateway.output().match(/an idle Postgres connection broke/g)).toHaveLength(1);
    // It stays in service: what it can't respond with no other replica could.
    expect(await readyz(gateway.opsUrl)).toEqual({
      status: 200,
      components: {
        postgres: expect.stringMatching(NOT_THERE),
        redis: 'ok',
      },
    });
    await postgres.resume();
    await isBack(secret);
  });

  it('rejects connections because it has too many does the same', async () => {
    const secret = await newKey();
    await asSuperuser(async (client) => {
      await client.query('ALTER ROLE gateway CONNECTION LIMIT 0');
      await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gateway'");
    });
    // A connection that was cut while it was idle is noticed by its next use at the latest.
    await until(async () => (await managed()) === 503);
    await goesOnWithoutPostgres(secret);
    await asSuperuser(async (client) => void (await client.query('ALTER ROLE gateway CONNECTION LIMIT -1')));
    await isBack(secret);
  });

  it('hangs does the same over bounded connections, with one query a request', async () => {
    const secret = await newKey();
    const silentAt = performance.now();
    relay.silence();
    const flood = Array.from({ length: 2500 }, () => statusOf(gateway.url, unknownKey()));
    await goesOnWithoutPostgres(secret);
    // Fourteen, each of which has a successor after five seconds. A relay that is silent does not notice that one has ended.
    const { connections } = relay;
    expect(connections).toBeLessThanOrEqual(14 * (1 + Math.ceil((performance.now() - silentAt) / 5000)));
    // Readiness tells what the last look found, and looks every five seconds.
    await until(async () => (await readyz(gateway.opsUrl)).components.postgres === 'no response in time');
    expect((await readyz(gateway.opsUrl)).status).toBe(200);
    expect(new Set(await Promise.all(flood))).toEqual(new Set([503]));
    relay.pass();
    await isBack(secret);
  });

  it('blocks a statement gives it 503, and goes on afterwards', async () => {
    const secret = await newKey();
    await asSuperuser(async (client) => {
      const { host, port } = client;
      const inside = new Client({
        host,
        port,
        user: 'gateway',
        password: 'gateway',
        database: 'gateway',
      });
      await inside.connect();
      await inside.query('BEGIN');
      await inside.query('LOCK TABLE consumer_keys IN ACCESS EXCLUSIVE MODE');
      const held = statusOf(gateway.url, secret);
      expect(await statusOf(gateway.url, cached)).toBe(200);
      expect(await held).toBe(503);
      await inside.query('ROLLBACK');
      await inside.end();
    });
    await isBack(secret);
  });
});
