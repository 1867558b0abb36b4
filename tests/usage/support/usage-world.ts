import { sql } from 'kysely';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Records } from '../../../src/storage/postgres/open-records.ts';
import { PostgresUsageHistory } from '../../../src/storage/postgres/usage/postgres-usage-history.ts';
import type { RedisLiveUsage } from '../../../src/storage/redis/usage/redis-live-usage.ts';
import { StoredUsage } from '../../../src/usage/stored-usage.ts';
import { UsageFlusher } from '../../../src/usage/usage-flusher.ts';
import { openTestRecords } from '../../support/records.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { sampleChange, sampleKey } from '../../support/sample-records.ts';
import { createMigratedDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { expireLeases, openRedisUsage, silent } from './usage-stores.ts';

/** A Redis server and a Postgres database for one test, with what this process needs to look into them. */
export interface UsageWorld {
  readonly redis: RedisServer;
  readonly databaseUrl: string;
  readonly records: Records;
  readonly live: RedisLiveUsage;
  readonly history: PostgresUsageHistory;
  readonly stored: StoredUsage;
  newKeys(count: number): Promise<readonly string[]>;
  /** Lets every lease run out, and moves everything to Postgres. */
  flushAll(): Promise<void>;
  /** Requests that Postgres alone knows of, all keys together. */
  requestsInPostgres(): Promise<number>;
  close(): Promise<void>;
}

export async function createUsageWorld(): Promise<UsageWorld> {
  const [redis, database] = await Promise.all([startRedisServer(), createMigratedDatabase()]);
  const records = openTestRecords(database.url, { maxConnections: 10 });
  const { live, close } = await openRedisUsage(redis.url);
  const history = new PostgresUsageHistory(records.db);
  const flusher = new UsageFlusher({ live, history, clock: systemClock, log: silent, intervalMs: 100 });
  return {
    redis,
    databaseUrl: database.url,
    records,
    live,
    history,
    stored: new StoredUsage(live, history),
    newKeys: async (count) => {
      const keys = Array.from({ length: count }, () => sampleKey());
      for (const key of keys) await records.keys.insert(key, sampleChange());
      return keys.map(({ id }) => id);
    },
    flushAll: async () => {
      // Twice: first the batch that somebody left behind, then what came after it.
      for (const _ of ['batches', 'live counts']) {
        // Again after a round that failed, as a replica does: a store may be slow for once.
        await until(async () => {
          await expireLeases(redis.url);
          return flusher.flush();
        });
      }
    },
    requestsInPostgres: async () => {
      const { rows } = await sql<{ requests: number }>`
        SELECT coalesce(sum(requests), 0)::bigint AS requests FROM usage_totals`.execute(records.db);
      return rows[0]?.requests ?? 0;
    },
    close: async () => {
      await close();
      await records.close();
      await database.drop();
      await redis.stop();
    },
  };
}
