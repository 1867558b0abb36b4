import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { windowKeyName } from '../../src/storage/redis/redis-key-names.ts';
import { requireProgram } from '../support/debian-package.ts';
import { openTestRecords } from '../support/records.ts';
import { startRedisServer } from '../support/redis-server.ts';

const run = promisify(execFile);
const RUNBOOK = 'docs/runbook.md';

it('the runbook empties Redis of all that is ours, whatever customers are named', async () => {
  await requireProgram('redis-cli', 'redis-tools');
  const [, command = ''] = /`(redis-cli .*--scan .*)`/.exec(await readFile(RUNBOOK, 'utf8')) ?? [];
  const server = await startRedisServer();
  const redis = new Redis(server.url);
  try {
    const customers = ["O'Brien GmbH", 'a "quoted" name', 'back\\slash', '$(reboot)', '-x', 'plain'];
    for (const customer of customers) await redis.set(windowKeyName('key_1', `main:${customer}`), 1);
    await redis.set("other's", 1);
    const [user, rights] = await documentedUser();
    await redis.call('ACL', 'SETUSER', user, ...rights);
    const url = server.url.replace('://', `://${user}:password@`);
    await run('sh', ['-c', command], { env: { ...process.env, REDIS_ADMIN_URL: url } });
    expect(await redis.keys('*')).toEqual(["other's"]);
  } finally {
    redis.disconnect();
    await server.stop();
  }
});

it('the runbook empties Redis, or stops where the user has no right to do that', async () => {
  await requireProgram('redis-cli', 'redis-tools');
  const [, script = ''] = await shellBlocksOfRestore();
  const server = await startRedisServer();
  const redis = new Redis(server.url);
  const flush = (url: string) =>
    run('sh', ['-e', '-c', script], { env: { ...process.env, REDIS_ADMIN_URL: url } });
  try {
    await redis.set(windowKeyName('key_1', 'main'), 1);
    const [user, rights] = await documentedUser();
    await redis.call('ACL', 'SETUSER', user, ...rights);
    await expect(flush(server.url.replace('://', `://${user}:password@`))).rejects.toMatchObject({ code: 1 });
    expect(await redis.dbsize()).toBe(1);
    expect((await flush(server.url)).stdout).toBe('OK\n0\n');
    expect(await redis.dbsize()).toBe(0);
  } finally {
    redis.disconnect();
    await server.stop();
  }
});

it('the runbook empties Redis before anything starts a replica', async () => {
  const section = await sectionOfRestore();
  const steps = section.split(/^(?=\d+\. )/m);
  const stepWith = (text: string) => Number(steps.find((step) => step.includes(text))?.split('.')[0]);
  expect(stepWith('FLUSHDB')).toBeLessThan(stepWith('`helm upgrade`'));
  expect(stepWith('FLUSHDB')).toBeLessThan(stepWith('Scale up again'));
  expect(section).toContain(`so that step ${stepWith('FLUSHDB')} is safe`);
});

it('the runbook restores a dump over a database that was changed and migrated since', async () => {
  const [, dump = ''] = /`(pg_dump .*)`/.exec(await readFile(RUNBOOK, 'utf8')) ?? [];
  const postgres = await startDebianPostgres();
  const directory = await mkdtemp(join(tmpdir(), 'tollgate-restore-'));
  const env = {
    ...process.env,
    SERVER_URL: postgres.url('postgres'),
    DATABASE_URL: postgres.url('tollgate'),
  };
  const sh = (script: string) => run('sh', ['-e', '-c', script], { env, cwd: directory });
  const query = async (statement: string, database = 'tollgate') => {
    const client = new Client({ connectionString: postgres.url(database) });
    await client.connect();
    return await client.query({ text: statement, rowMode: 'array' }).finally(() => client.end());
  };
  try {
    await query('CREATE DATABASE tollgate', 'postgres');
    await migrate(env.DATABASE_URL);
    await query("UPDATE plans SET description = 'of the backup'");
    await sh(dump);
    await query("UPDATE plans SET description = 'changed since'");
    await query(
      "CREATE TABLE of_a_later_version (id text REFERENCES plans); INSERT INTO of_a_later_version VALUES ('default')",
    );
    const [restore = '', , changes = ''] = await shellBlocksOfRestore();
    await sh(restore);
    expect((await query('SELECT id, description FROM plans')).rows).toEqual([['default', 'of the backup']]);
    expect((await query("SELECT to_regclass('of_a_later_version')")).rows).toEqual([[null]]);
    expect(await migrate(env.DATABASE_URL)).toEqual([]);
    expect((await sh(changes)).stdout).toContain('target_name');
    expect((await query('SELECT description FROM plans', 'tollgate_before')).rows).toEqual([
      ['changed since'],
    ]);
  } finally {
    await postgres.stop();
    await rm(directory, { recursive: true, force: true });
  }
}, 300_000);

/** The user of Redis that the docs call enough for the gateway, whose password is `password`: its name and its rights. */
async function documentedUser(): Promise<readonly [user: string, rights: readonly string[]]> {
  const [, user = '', rights = ''] =
    /`ACL SETUSER (\S+) ([^`]*)`/.exec(await readFile('docs/settings.md', 'utf8')) ?? [];
  return [user, rights.split(' ')];
}

/** What the runbook says about a restore: its steps, and what is to be known about them. */
async function sectionOfRestore(): Promise<string> {
  const [, section = ''] = /^To restore:\n([\s\S]*?)^## /m.exec(await readFile(RUNBOOK, 'utf8')) ?? [];
  return section;
}

/** The commands of the steps of a restore, in their order. */
async function shellBlocksOfRestore(): Promise<readonly string[]> {
  return [...(await sectionOfRestore()).matchAll(/^ {3}```sh\n([\s\S]*?)^ {3}```$/gm)].map(
    ([, block = '']) => block,
  );
}

async function migrate(url: string): Promise<readonly string[]> {
  const records = openTestRecords(url, { chainSecrets: null });
  return await records.migrate().finally(() => records.close());
}

/** A server of the same version as `pg_dump` and `pg_restore`, which reject a newer one. */
async function startDebianPostgres() {
  const program = await requireProgram('pg_virtualenv', 'postgresql');
  const server = spawn(
    program,
    ['-t', 'sh', '-c', 'echo "$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT"; read -r end'],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const ended = once(server, 'exit');
  const address = await new Promise<string>((resolve, reject) => {
    let written = '';
    server.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      written += chunk;
      const [, found] = /^(\S+@\S+)\n/m.exec(written) ?? [];
      if (found !== undefined) resolve(found);
    });
    server.once('exit', () => reject(new Error(`Postgres did not start: ${written}`)));
  });
  return {
    url: (database: string) => `postgres://${address}/${database}`,
    stop: async () => {
      server.stdin.end();
      await ended;
    },
  };
}
