import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { messagesOf } from '../../src/client/event-stream.ts';
import { runTollgate } from '../cli/support/run-tollgate.ts';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { endChild } from '../support/end-child.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, gatewaySettings, ROOT_TOKEN, startGateway } from '../support/gateway.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { queryDatabase, testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { readyz } from './support/probe.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

/** Fewer than either replica has connections: each transaction may be in another session than the one before. */
const SESSIONS = 4;
const NEW_KEY = Buffer.alloc(32, 8).toString('base64');

let postgres: PostgresServer;
let backend: TestBackend;
let bouncer: ChildProcess;
let directory: string;
/** PgBouncer's address, of the database `postgres`. */
let pooledUrl: string;
let environment: Readonly<Record<string, string>>;
let gateway: GatewayProcess;
let other: GatewayProcess;

/** What the runbook says that PgBouncer needs. */
async function documentedSettings(): Promise<string> {
  const runbook = await readFile('docs/runbook.md', 'utf8');
  const [, settings] = /^```ini\n(\[pgbouncer\]\n[\s\S]*?)^```$/m.exec(runbook) ?? [];
  if (settings === undefined) throw new Error('the runbook has no settings for PgBouncer');
  return settings;
}

/** Runs a statement in a new session: on a server, or on PgBouncer's console where it is PgBouncer's database `pgbouncer`. */
async function execute(address: string, database: string, statement: string): Promise<void> {
  const url = new URL(address);
  url.pathname = `/${database}`;
  await queryDatabase(url.href, statement);
}

/** Does to each of PgBouncer's sessions what pg_dump does to its own. Transactions that are open together are in different sessions. */
async function emptySearchPaths(): Promise<void> {
  const clients = Array.from({ length: SESSIONS }, () => new Client({ connectionString: pooledUrl }));
  for (const client of clients) {
    await client.connect();
    await client.query('BEGIN');
    await client.query("SELECT set_config('search_path', '', false)");
  }
  for (const client of clients) {
    await client.query('COMMIT');
    await client.end();
  }
}

beforeAll(async () => {
  const program = await requireProgram('pgbouncer', 'pgbouncer');
  postgres = await startPostgresServer();
  backend = await startBackend();
  directory = await mkdtemp(join(tmpdir(), 'tollgate-pgbouncer-'));
  const { port, username, password } = new URL(postgres.url);
  const bouncerPort = await freePort();
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(join(directory, 'users.txt'), `"${username}" "${password}"\n`);
  await writeFile(
    file,
    `[databases]\n* = host=127.0.0.1 port=${port}\n${await documentedSettings()}\nlisten_addr = 127.0.0.1\nlisten_port = ${bouncerPort}\nunix_socket_dir =\nauth_type = plain\nauth_file = ${directory}/users.txt\nadmin_users = ${username}\nserver_login_retry = 1\ndefault_pool_size = ${SESSIONS}\n`,
  );
  await chmod(directory, 0o755);
  // It refuses to run as root.
  const asUser = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  bouncer = spawn(program, [file], { stdio: 'ignore', ...asUser });
  const url = new URL(postgres.url);
  url.port = String(bouncerPort);
  pooledUrl = url.href;
  environment = gatewaySettings(backend.url, pooledUrl, testRedisUrl());
  // Both migrate.
  [gateway, other] = await Promise.all([startGateway(environment), startGateway(environment)]);
}, 300_000);

afterAll(async () => {
  await Promise.all([gateway?.stop(), other?.stop()]);
  await endChild(bouncer);
  await backend?.stop();
  await postgres?.stop();
  await rm(directory, { recursive: true, force: true });
});

describe('a gateway behind PgBouncer in transaction mode', () => {
  it('migrates, serves, and writes usage', async () => {
    const admin = new Admin(gateway.url);
    const { id, secret } = await admin.makeKey('pooled');
    for (let sent = 0; sent < 20; sent += 1) expect(await statusOf(gateway.url, secret)).toBe(200);
    await until(async () => (await admin.detail(id)).usage.totalRequests === 20);
  });

  it('finds and publishes what a replica without Redis has changed', async () => {
    const { id, secret } = await new Admin(gateway.url).makeKey('changed elsewhere');
    expect(await statusOf(gateway.url, secret)).toBe(200);
    const direct = new Client({ connectionString: postgres.url });
    const redis = new Redis(testRedisUrl());
    try {
      await direct.connect();
      await direct.query('UPDATE consumer_keys SET enabled = false, version = version + 1 WHERE id = $1', [
        id,
      ]);
      await until(async () => (await statusOf(gateway.url, secret)) === 401);
      await until(async () => {
        const { rows } = await direct.query('SELECT published_at FROM record_changes WHERE id = $1', [id]);
        return rows[0]?.published_at instanceof Date;
      });
      expect(await redis.get(`tg:{${id}}:version`)).toMatch(/^2\./);
    } finally {
      redis.disconnect();
      await direct.end();
    }
  });

  it('has each change of a key in force with the next request to another replica', async () => {
    const admin = new Admin(gateway.url);
    const { id, secret } = await admin.makeKey('changed often');
    expect(await statusOf(other.url, secret)).toBe(200);
    await admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: false });
    expect(await statusOf(other.url, secret)).toBe(401);
    await admin.call('PATCH', `/consumer-api-key/${id}`, { enabled: true });
    const rotated = await admin.call('POST', `/consumer-api-key/${id}/rotate`, { graceSeconds: 3600 });
    for (const valid of [secret, rotated.body.secret]) expect(await statusOf(other.url, valid)).toBe(200);
    const found = await new Admin(other.url).call('POST', '/api-keys/find', { secret });
    expect(found.body).toMatchObject({ consumerApiKeyId: id });
    await admin.deleteKey(id);
    expect(await statusOf(other.url, secret)).toBe(401);
  });

  it('performs requests with the same Idempotency-Key once', async () => {
    const create = ({ url }: GatewayProcess) =>
      new Admin(url).call('POST', '/consumer-api-key/create', { name: 'once' }, { 'idempotency-key': 'k-1' });
    const statuses = (await Promise.all([gateway, other, gateway, other].map(create))).map(
      ({ status }) => status,
    );
    expect(statuses.filter((status) => status !== 201 && status !== 409)).toEqual([]);
    const { body } = await create(other);
    const { apiKeys } = (await new Admin(gateway.url).call('GET', '/consumer-api-key?q=once')).body;
    expect(apiKeys).toEqual([expect.objectContaining({ consumerApiKeyId: body.id })]);
  });

  it('moves the keys of a plan with a job, and with the deletion of the plan', async () => {
    const admin = new Admin(gateway.url);
    for (const planId of ['pooled-from', 'pooled-to', 'pooled-last'])
      await admin.makePlan(planId, 1000, 'day');
    const keys = Array.from({ length: 150 }, (_, index) => ({
      ...{ name: `moved ${index}`, secret: `a-secret-from-elsewhere-${index}`, rateLimitId: 'pooled-from' },
    }));
    expect(await admin.call('POST', '/api-keys/import', { keys })).toMatchObject({ status: 200 });
    const wanted = { filter: { rateLimitId: 'pooled-from' }, action: 'set-plan', rateLimitId: 'pooled-to' };
    const { jobId } = (await admin.call('POST', '/api-keys/bulk', wanted)).body;
    const job = async () => (await new Admin(other.url).call('GET', `/tollgate/job/${jobId}`)).body;
    await until(async () => (await job()).state !== 'running');
    expect(await job()).toMatchObject({ state: 'done', done: keys.length, failedCount: 0 });
    const deleted = await admin.call('DELETE', '/rate-limit/pooled-to?rebindTo=pooled-last');
    expect(deleted.body).toMatchObject({ reboundKeys: keys.length });
  });

  it('sends the events of all replicas to a stream', async () => {
    const stream = await fetch(`${other.url}/tollgate/events`, {
      headers: { authorization: `Bearer ${ROOT_TOKEN}` },
    });
    const chunks = stream.body?.pipeThrough(new TextDecoderStream());
    if (chunks === undefined) throw new Error('the stream has no body');
    const { id } = await new Admin(gateway.url).makeKey('heard of');
    for await (const { data } of messagesOf(chunks)) if (data.includes(id)) break;
  });

  it('counts usage of two replicas once', async () => {
    const { id, secret } = await new Admin(gateway.url).makeKey('used on both');
    for (let sent = 0; sent < 40; sent += 1)
      expect(await statusOf(sent % 2 === 0 ? gateway.url : other.url, secret)).toBe(200);
    const direct = new Client({ connectionString: postgres.url });
    try {
      await direct.connect();
      const query = 'SELECT requests::int FROM usage_totals WHERE key_id = $1';
      await until(async () => (await direct.query(query, [id])).rows[0]?.requests > 0, { timeoutMs: 60_000 });
      await until(async () => (await direct.query(query, [id])).rows[0]?.requests === 40, {
        timeoutMs: 60_000,
      });
    } finally {
      await direct.end();
    }
  }, 180_000);

  it('serves known keys while Postgres fails over, and the others after it', async () => {
    const admin = new Admin(gateway.url);
    const { secret } = await admin.makeKey('known');
    const { secret: unseen } = await admin.makeKey('not seen yet');
    expect(await statusOf(gateway.url, secret)).toBe(200);
    await postgres.halt();
    await until(async () => (await readyz(gateway.opsUrl)).components.postgres !== 'ok');
    expect(await statusOf(gateway.url, secret)).toBe(200);
    expect(await statusOf(gateway.url, unseen)).toBe(503);
    await postgres.resume();
    await until(async () => (await statusOf(gateway.url, unseen)) === 200);
    await until(async () => (await readyz(gateway.opsUrl)).components.postgres === 'ok');
  });

  it('serves again after RECONNECT, if a dump has emptied the search_path of its sessions', async () => {
    const { secret } = await new Admin(gateway.url).makeKey('not seen before the dump');
    await emptySearchPaths();
    const plans = async () => (await new Admin(gateway.url).call('GET', '/rate-limit')).status;
    expect(await plans()).toBe(503);
    expect(await statusOf(gateway.url, secret)).toBe(503);
    expect((await readyz(gateway.opsUrl)).components.postgres).toBe('ok');
    await execute(pooledUrl, 'pgbouncer', 'RECONNECT');
    await until(async () => (await statusOf(gateway.url, secret)) === 200);
    expect(await plans()).toBe(200);
  });

  it('keeps sessions of a database open, which can be renamed after PAUSE', async () => {
    await execute(postgres.url, 'postgres', 'CREATE DATABASE restored');
    await execute(pooledUrl, 'restored', 'SELECT 1');
    const rename = () =>
      execute(postgres.url, 'postgres', 'ALTER DATABASE restored RENAME TO restored_before');
    await expect(rename()).rejects.toMatchObject({ code: '55006' });
    await execute(pooledUrl, 'pgbouncer', 'PAUSE restored');
    await rename();
    await execute(postgres.url, 'postgres', 'CREATE DATABASE restored');
    await execute(pooledUrl, 'pgbouncer', 'RESUME restored');
    await execute(pooledUrl, 'restored', 'SELECT 1');
  });

  it('names a parameter that the pooler rejects, and connects once the URL leaves it out', async () => {
    const leftOut = { ...environment, DATABASE_URL: `${pooledUrl}?statement_timeout=` };
    const faults = async (settings: Readonly<Record<string, string>>) => {
      const { stdout } = await runTollgate(['doctor', '-o', 'json'], { environment: settings });
      const findings = JSON.parse(stdout) as readonly Readonly<Record<string, string>>[];
      // A slow machine is a warning.
      return findings.filter(({ check, status }) => check === 'postgres' && status === 'fault');
    };
    await execute(pooledUrl, 'pgbouncer', "SET ignore_startup_parameters = ''");
    try {
      expect(await faults(environment)).toEqual([
        expect.objectContaining({
          status: 'fault',
          finding: expect.stringMatching(/^Postgres can not be used: .*startup parameter: statement_timeout/),
        }),
      ]);
      expect(await faults(leftOut)).toEqual([]);
      const third = await startGateway(leftOut);
      try {
        const { secret } = await new Admin(third.url).makeKey('without a timeout of the session');
        expect(await statusOf(third.url, secret)).toBe(200);
      } finally {
        await third.stop();
      }
    } finally {
      const [, ignored] = /^ignore_startup_parameters = (.*)$/m.exec(await documentedSettings()) ?? [];
      await execute(pooledUrl, 'pgbouncer', `SET ignore_startup_parameters = '${ignored}'`);
    }
  });

  it('rotates the encryption key, and the audit log stays whole', async () => {
    const { id, secret } = await new Admin(gateway.url).makeKey('sealed again');
    const keys = `${NEW_KEY},${environment.ENCRYPTION_KEY}`;
    const { DATABASE_URL = '' } = environment;
    const run = await runTollgate(['rotate-encryption-key'], {
      environment: { DATABASE_URL, ENCRYPTION_KEY: keys },
    });
    expect(run).toMatchObject({ code: 0 });
    const rotated = await startGateway({ ...environment, ENCRYPTION_KEY: NEW_KEY });
    try {
      const admin = new Admin(rotated.url);
      expect((await admin.detail(id)).secret).toBe(secret);
      expect((await admin.call('GET', '/tollgate/audit-log/verify')).body).toMatchObject({ valid: true });
    } finally {
      await rotated.stop();
    }
  });
});
