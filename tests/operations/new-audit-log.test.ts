import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import type { AuditedAction } from '../../src/audit/audit-entry.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { SecretVault } from '../../src/secrets/secret-vault.ts';
import type { Records } from '../../src/storage/postgres/open-records.ts';
import { requireProgram } from '../support/debian-package.ts';
import { openTestRecords } from '../support/records.ts';
import { sampleChange } from '../support/sample-records.ts';
import { createMigratedDatabase, type TestDatabase } from '../support/stores.ts';

const run = promisify(execFile);
const ACTION: AuditedAction = {
  action: 'limits.reset',
  target: { type: 'key', id: 'key_a', name: 'a "key", of two\nlines', tags: ['eu', 'a, b'] },
  changes: { limitId: { from: null, to: 'main' } },
};
/** The files of the runbook, and the tables that they hold. */
const TABLES = {
  'audit-log.csv': 'audit_log',
  'audit-log-keys.csv': 'audit_log_keys',
  'audit-log-ends.csv': 'audit_log_ends',
};

const [OLD_KEY, NEW_KEY] = [randomBytes(32), randomBytes(32)];

interface Store {
  readonly records: Records;
  readonly database: TestDatabase;
}

let directory: string;
let store: Store;
let other: Store;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-audit-log-'));
  store = await openNew(NEW_KEY, OLD_KEY);
  other = await openNew(NEW_KEY);
});
afterEach(async () => {
  for (const { records, database } of [store, other]) {
    await records.close();
    await database.drop();
  }
  await rm(directory, { recursive: true, force: true });
});

async function openNew(...keys: Buffer[]): Promise<Store> {
  const database = await createMigratedDatabase();
  return { records: open(database, ...keys), database };
}

function open({ url }: TestDatabase, ...keys: Buffer[]): Records {
  return openTestRecords(url, { chainSecrets: new SecretVault(keys, systemRandom) });
}

/** Runs a script with psql on the PATH and the database of a store. */
async function sh(script: string, { database }: Store) {
  await requireProgram('psql', 'postgresql-client');
  // Its parameters are those of the npm package pg.
  const url = new URL(database.url);
  url.search = '';
  return run('sh', ['-e', '-c', script], {
    env: { ...process.env, DATABASE_URL: url.href },
    cwd: directory,
  });
}

async function startNewLog(): Promise<void> {
  const runbook = await readFile('docs/runbook.md', 'utf8');
  const [, script = ''] = /^## Start a new audit log\n[\s\S]*?^```sh\n([\s\S]*?)^```$/m.exec(runbook) ?? [];
  await sh(script, store);
}

/** Five entries, of which the third was changed, in a log that had older ones. All were written under an old key, which was retired. */
async function breakLog(): Promise<void> {
  const before = open(store.database, OLD_KEY);
  for (let day = 1; day <= 7; day += 1)
    await before.audit.record(ACTION, sampleChange({ atMs: Date.UTC(2025, 0, day) }));
  await before.audit.prune(Date.UTC(2025, 0, 3), 0);
  await before.close();
  expect(await store.records.audit.retireKeys()).toBe(1);
  await sql`UPDATE audit_log SET address = '192.0.2.1' WHERE sequence = 5`.execute(store.records.db);
}

const rows = ({ records }: Store) =>
  records.db.selectFrom('audit_log').selectAll().orderBy('sequence').execute();

it('a new audit log begins whole, and the files hold the old one, which verifies as before', async () => {
  await breakLog();
  const [entries, report] = [await rows(store), await store.records.audit.verify()];
  expect(report).toMatchObject({ isValid: false, problem: 'changed', firstBroken: 5, entries: 2 });
  await startNewLog();
  expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 0 });
  await store.records.audit.record(ACTION, sampleChange());
  expect(await store.records.audit.verify()).toMatchObject({ isValid: true, entries: 1 });

  for (const [file, table] of Object.entries(TABLES))
    await sh(
      `psql "$DATABASE_URL" -c 'DELETE FROM ${table}' -c "\\copy ${table} FROM '${file}' CSV HEADER"`,
      other,
    );
  expect(await rows(other)).toEqual(entries);
  expect(await other.records.audit.verify()).toEqual(report);
});

it.each(Object.keys(TABLES))('no entry is removed if %s can not be written', async (file) => {
  await breakLog();
  const [entries, report] = [await rows(store), await store.records.audit.verify()];
  await mkdir(join(directory, file));
  await expect(startNewLog()).rejects.toMatchObject({ code: 3 });
  expect(await rows(store)).toEqual(entries);
  expect(await store.records.audit.verify()).toEqual(report);
});
