import { randomBytes } from 'node:crypto';
import { Client, type QueryResultRow } from 'pg';

/** A database of a test's own. */
export interface TestDatabase {
  readonly url: string;
  /** Drops it, along with the connections that are still open. */
  drop(): Promise<void>;
}

/**
 * The Redis of this run, with a logical database for each Jest worker, so that test files that run at the same time share no
 * key. Files of one worker follow each other in the same database: one that needs it empty flushes it. Channels know no
 * databases: a subscriber hears the other worker too.
 */
export function testRedisUrl(): string {
  const url = new URL(setting('TEST_REDIS_URL'));
  url.pathname = `/${Number(process.env.JEST_WORKER_ID ?? '1') % 16}`;
  return url.href;
}

/** Makes an empty database with a unique name. */
export function createTestDatabase(): Promise<TestDatabase> {
  return createDatabaseOn(setting('TEST_DATABASE_URL'));
}

/** Makes one with the tables of this version, by a copy: the migrations take many times as long. */
export function createMigratedDatabase(): Promise<TestDatabase> {
  const template = new URL(setting('TEST_DATABASE_TEMPLATE'));
  return createDatabaseOn(setting('TEST_DATABASE_URL'), template.pathname.slice(1));
}

/**
 * The same on a server of the caller's choice. The gateway gives up on a query after five seconds, and Postgres on an idle transaction after
 * fifteen, which a busy machine may take: where no test waits for that, the URL gives each a minute.
 */
export async function createDatabaseOn(serverUrl: string, template = 'template1'): Promise<TestDatabase> {
  const name = `tollgate_${randomBytes(8).toString('hex')}`;
  // Half the CPU time of the default, which writes every page of the template to the log as well.
  await queryDatabase(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  for (const timeout of ['statement_timeout', 'query_timeout', 'idle_in_transaction_session_timeout'])
    url.searchParams.set(timeout, '60000');
  const drop = async (): Promise<void> => {
    await queryDatabase(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  };
  return { url: url.href, drop };
}

/** A directory with the files of an embedded Postgres that has the tables of this version, to be copied. */
export function embeddedPostgres(): string {
  return setting('TEST_EMBEDDED_POSTGRES');
}

/** The rows of one statement, which runs over a connection that ends with it. */
export async function queryDatabase<Row extends QueryResultRow>(
  url: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(statement, [...values])).rows;
  } finally {
    await client.end();
  }
}

function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) {
    throw new Error(`${name} is not set: tests run through Jest, whose global setup finds the stores`);
  }
  return value;
}
