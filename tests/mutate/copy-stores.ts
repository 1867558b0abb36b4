import { Client } from 'pg';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import {
  findPostgres,
  makeEmbeddedPostgres,
  makeMigratedDatabase,
  SHARED_REDIS,
  type TestStore,
} from '../support/test-stores.ts';

interface Databases {
  readonly postgres: TestStore;
  readonly template: TestStore;
  readonly embedded: TestStore;
}

/** Stores that the runs of one copy share, so that each run saves the time to make them. */
export class CopyStores {
  #redis: RedisServer | undefined;
  #databases: Databases | undefined;

  /** Removes what a run has left that was stopped, and gives the environment for the next. */
  async emptied(): Promise<Readonly<Record<string, string>>> {
    const { postgres, template, embedded } = await this.#started();
    // In one that was given, other databases may be another run's.
    if (process.env.TEST_DATABASE_URL === undefined)
      await dropOtherDatabases(postgres.url, new URL(template.url).pathname.slice(1));
    // A mutated script may have left it in an endless loop.
    await this.#redis?.stop();
    this.#redis = await startRedisServer(SHARED_REDIS);
    return {
      TEST_REDIS_URL: this.#redis.url,
      TEST_DATABASE_URL: postgres.url,
      TEST_DATABASE_TEMPLATE: template.url,
      TEST_EMBEDDED_POSTGRES: embedded.url,
    };
  }

  async stop(): Promise<void> {
    await this.#redis?.stop();
    await this.#databases?.embedded.stop();
    await this.#databases?.postgres.stop();
  }

  async #started(): Promise<Databases> {
    if (this.#databases === undefined) {
      const postgres = await findPostgres();
      this.#databases = {
        postgres,
        template: await makeMigratedDatabase(postgres),
        embedded: await makeEmbeddedPostgres(),
      };
    }
    return this.#databases;
  }
}

async function dropOtherDatabases(url: string, kept: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>(
      String.raw`SELECT datname FROM pg_database WHERE datname LIKE 'tollgate\_%' AND datname <> $1`,
      [kept],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
  } finally {
    await client.end();
  }
}
