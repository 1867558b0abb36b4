import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { ENCRYPTION_KEY, ROOT_TOKEN } from '../support/gateway.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { runInProcess } from './support/run-in-process.ts';

/** More processes than the machine starts while the command runs. */
const NEXT_PROCESSES = 3000;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgresServer();
});
afterAll(() => server?.stop());

/** Runs statements on a connection that may write, and resolves with the first row of the last one. */
async function onServer(...statements: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const client = new Client({
    connectionString: server.url,
    options: '-c default_transaction_read_only=off',
  });
  await client.connect();
  try {
    let row = {};
    for (const statement of statements) row = (await client.query(statement)).rows[0] ?? {};
    return row;
  } finally {
    await client.end();
  }
}

/** What the command says that is wrong, with what to do. */
async function faults() {
  const { code, stdout } = await runInProcess(['doctor', '-o', 'json'], {
    BACKEND_URL: 'http://127.0.0.1:1',
    DATABASE_URL: server.url,
    ROOT_TOKEN,
    ENCRYPTION_KEY,
  });
  const findings = JSON.parse(stdout) as readonly Readonly<Record<string, string>>[];
  const ofPostgres = findings.filter(({ check, status }) => check === 'postgres' && status === 'fault');
  return { code, faults: ofPostgres.map(({ finding, remedy }) => `${finding} ${remedy}`) };
}

describe('tollgate doctor', () => {
  it('finds nothing wrong with a Postgres that takes writes', async () => {
    expect((await faults()).faults).toEqual([]);
  });

  it('says that Postgres is set to read-only', async () => {
    await onServer('ALTER DATABASE postgres SET default_transaction_read_only = on');
    try {
      expect(await faults()).toEqual({
        code: 1,
        faults: [
          expect.stringMatching(/^The server takes no writes: default_transaction_read_only .* Set it/),
        ],
      });
    } finally {
      await onServer('ALTER DATABASE postgres RESET default_transaction_read_only');
    }
  });

  it('says that the disk of Postgres is full', async () => {
    const { data_directory = '' } = await onServer('SHOW data_directory');
    const { pid = 0 } = await onServer('SELECT pg_backend_pid() AS pid');
    const temporary = join(data_directory, 'base', 'pgsql_tmp');
    await mkdir(temporary, { recursive: true });
    // The first temporary file of each process that may serve the command is on a device that is always full.
    const largest = Number(await readFile('/proc/sys/kernel/pid_max', 'utf8'));
    const files = Array.from({ length: NEXT_PROCESSES }, (_, index) =>
      join(temporary, `pgsql_tmp${(Number(pid) + index) % largest}.0`),
    );
    await Promise.all(files.map((file) => symlink('/dev/full', file)));
    try {
      expect(await faults()).toEqual({
        code: 1,
        faults: [
          expect.stringMatching(/^The disk of the server is full: .*No space left on device\. Make room/),
        ],
      });
    } finally {
      await rm(temporary, { recursive: true });
    }
  });

  it('says that Postgres is a standby', async () => {
    const { data_directory = '' } = await onServer('SHOW data_directory');
    await server.halt();
    await writeFile(join(data_directory, 'standby.signal'), '');
    await server.resume();
    expect(await faults()).toEqual({
      code: 1,
      faults: [expect.stringMatching(/^The server is a standby, which takes no writes\. Name the primary/)],
    });
  });
});
