import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CompiledQuery, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import type { PathCase } from '../../paths/path-readings.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import type { RecordsDatabase } from './records-database.ts';
import { isLockTimeout } from './unavailability.ts';

/** The longest wait of a migration for a lock on a table, behind which the reads and writes of the table queue up. */
const LOCK_TIMEOUT = '2s';
/** Between two attempts to get such a lock. Milliseconds. */
const LOCK_PAUSE_MS = 1000;
/** About five minutes: a dump holds locks on all tables until its end. */
const LOCK_ATTEMPTS = 100;

const FILE_NAME = /^(\d{4}_[a-z0-9_]+)\.sql$/;

/**
 * Applies the files `NNNN_name.sql` of the directory that this database has not seen, in order, forward only. Each has its own transaction,
 * so that no lock on a table is held while the next one runs, and is tried again while it can't have a lock. Resolves with the names of those applied now. Rejects when one fails: that
 * one is rolled back, those before it stay applied.
 *
 * Replicas that start together apply each migration once, because of a lock that ends with the transaction. Kysely's own lock belongs to
 * the session, and would stay locked behind a transaction pooler. A database that a later version has migrated further is left as it
 * is: each migration suits the version before, and both versions run during an upgrade.
 */
export async function applyMigrations(
  db: RecordsDatabase,
  options: MigrationOptions,
): Promise<readonly string[]> {
  const applied: string[] = [];
  // Kysely rejects if a file of an applied migration is missing, even when there is nothing to apply.
  while ((await pendingMigrations(db, options.migrationsDirectory)).length > 0) {
    applied.push(...(await withLocks(() => db.transaction().execute((trx) => applyNext(trx, options)))));
  }
  return applied;
}

async function withLocks<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let attempts = 1; attempts < LOCK_ATTEMPTS; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Error) || !isLockTimeout(error.cause)) throw error;
    }
    await pause(LOCK_PAUSE_MS);
  }
  return attempt();
}

interface MigrationOptions {
  readonly migrationsDirectory: string;
  /** Migrations read it as `tollgate.path_case`. */
  readonly pathCase?: PathCase;
}

async function applyNext(
  trx: RecordsDatabase,
  { migrationsDirectory: directory, pathCase = 'insensitive' }: MigrationOptions,
): Promise<readonly string[]> {
  // Behind a transaction pooler the role has timeouts for the statements of a gateway, and the URL may have them.
  await sql`SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)`.execute(
    trx,
  );
  await sql`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.migrations})`.execute(trx);
  await sql`SELECT set_config('tollgate.path_case', ${pathCase}, true)`.execute(trx);
  await sql`SELECT set_config('lock_timeout', ${LOCK_TIMEOUT}, true)`.execute(trx);
  const { error, results = [] } = await migrator(trx, directory).migrateUp();
  if (error !== undefined) {
    const failed = results.find((result) => result.status === 'Error')?.migrationName;
    throw failed === undefined ? error : new Error(`The migration ${failed} failed.`, { cause: error });
  }
  return results.map((result) => result.migrationName);
}

/** The names of the migrations that this database has not seen. */
export async function pendingMigrations(db: RecordsDatabase, directory: string): Promise<readonly string[]> {
  return (await migrationStates(db, directory)).pending;
}

/** The names of the migrations of `directory`, by whether this database has seen them. */
export async function migrationStates(db: RecordsDatabase, directory: string): Promise<MigrationStates> {
  const migrations = await migrator(db, directory).getMigrations();
  const [applied, pending] = [true, false].map((isApplied) =>
    migrations.filter(({ executedAt }) => (executedAt !== undefined) === isApplied).map(({ name }) => name),
  );
  return { applied: applied ?? [], pending: pending ?? [] };
}

/** Names of migrations, in their order. */
export interface MigrationStates {
  readonly applied: readonly string[];
  readonly pending: readonly string[];
}

function migrator(db: RecordsDatabase, directory: string): Migrator {
  return new Migrator({ db, provider: { getMigrations: () => migrationsIn(directory) } });
}

async function migrationsIn(directory: string): Promise<Record<string, Migration>> {
  const migrations: Record<string, Migration> = {};
  for (const file of (await readdir(directory)).toSorted()) {
    const name = FILE_NAME.exec(file)?.[1];
    if (name !== undefined) migrations[name] = sqlMigration(join(directory, file));
  }
  return migrations;
}

/** The file is read only to be applied: each start of a gateway looks for the names of all. */
function sqlMigration(path: string): Migration {
  return {
    up: async (db) => {
      for (const statement of statementsOf(await readFile(path, 'utf8'))) {
        await db.executeQuery(CompiledQuery.raw(statement));
      }
    },
  };
}

/** Splits a file, because the embedded Postgres takes one statement at a time. Each statement ends with `;` at the end of a line. */
function statementsOf(text: string): readonly string[] {
  return text
    .replace(/^\s*--.*$/gm, '')
    .split(/;[ \t]*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}
