import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { Admin } from '../support/admin.ts';
import { statusOf } from '../support/burst.ts';
import { requireProgram } from '../support/debian-package.ts';
import { endChild } from '../support/end-child.ts';
import { freePort } from '../support/free-port.ts';
import { type GatewayProcess, gatewaySettings, startGateway } from '../support/gateway.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { testRedisUrl } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { readyz } from './support/probe.ts';
import { startBackend, type TestBackend } from './support/test-backend.ts';

let postgres: PostgresServer;
let backend: TestBackend;
let bouncer: ChildProcess;
let directory: string;
let gateway: GatewayProcess;

/** What the runbook says that PgBouncer needs. */
async function documentedSettings(): Promise<string> {
  const runbook = await readFile('docs/runbook.md', 'utf8');
  const [, settings] = /^```ini\n(\[pgbouncer\]\n[\s\S]*?)^```$/m.exec(runbook) ?? [];
  if (settings === undefined) throw new Error('the runbook has no settings for PgBouncer');
  return settings;
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
    `[databases]\n* = host=127.0.0.1 port=${port}\n${await documentedSettings()}\nlisten_addr = 127.0.0.1\nlisten_port = ${bouncerPort}\nunix_socket_dir =\nauth_type = plain\nauth_file = ${directory}/users.txt\nserver_login_retry = 1\n`,
  );
  await chmod(directory, 0o755);
  // It refuses to run as root.
  const asUser = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  bouncer = spawn(program, [file], { stdio: 'ignore', ...asUser });
  const url = new URL(postgres.url);
  url.port = String(bouncerPort);
  gateway = await startGateway(gatewaySettings(backend.url, url.href, testRedisUrl()));
}, 300_000);

afterAll(async () => {
  await gateway?.stop();
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
});
