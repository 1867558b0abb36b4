import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

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
export async function createTestDatabase(): Promise<TestDatabase> {
  const name = `tollgate_${randomBytes(8).toString('hex')}`;
  await administer(`CREATE DATABASE ${name}`);
  const url = new URL(setting('TEST_DATABASE_URL'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

/** A directory with the files of a new embedded Postgres, to be copied. */
export function embeddedPostgres(): string {
  return setting('TEST_EMBEDDED_POSTGRES');
}

async function administer(statement: string): Promise<void> {
  const client = new Client({ connectionString: setting('TEST_DATABASE_URL') });
  await client.connect();
  try {
    await client.query(statement);
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
