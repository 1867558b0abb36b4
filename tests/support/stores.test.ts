import { describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { onRedis } from './on-redis.ts';
import { createPostgresRecords } from './records.ts';
import { startRedisServer } from './redis-server.ts';
import { sampleChange, sampleKey } from './sample-records.ts';
import { createTestDatabase, queryDatabase, testRedisUrl } from './stores.ts';
import { SHARED_REDIS } from './test-stores.ts';

describe('the stores of a test run', () => {
  it('have a Redis that responds', async () => {
    expect(await onRedis(testRedisUrl(), (redis) => redis.ping())).toBe('PONG');
  });

  it('have a Redis in which no test may break what others use', async () => {
    const server = await startRedisServer(SHARED_REDIS);
    await onRedis(server.url, async (redis) => {
      await expect(redis.call('CLIENT', 'KILL', 'TYPE', 'normal')).rejects.toThrow('NOPERM');
      await expect(redis.flushall()).rejects.toThrow('NOPERM');
      expect(await redis.flushdb()).toBe('OK');
    });
    await server.stop();
  });

  it('have a Postgres in which each test gets its own empty database', async () => {
    const database = await createTestDatabase();
    const count = "SELECT count(*)::int AS tables FROM pg_tables WHERE schemaname = 'public'";
    expect(await queryDatabase(database.url, count)).toEqual([{ tables: 0 }]);
    await database.drop();
    await expect(queryDatabase(database.url, count)).rejects.toThrow('does not exist');
  });

  it('have a Postgres on which a query may take longer than the gateway lets it elsewhere', async () => {
    const { records, remove } = await createPostgresRecords();
    const { rows } = await sql`SHOW statement_timeout`.execute(records.db);
    expect(rows).toEqual([{ statement_timeout: '1min' }]);
    await remove();
  });

  it('have a Postgres in which each test gets its own database with all tables', async () => {
    const [one, other] = [await createPostgresRecords(), await createPostgresRecords()];
    expect(await one.records.pendingMigrations()).toEqual([]);
    await one.records.keys.insert(sampleKey(), sampleChange());
    expect(await other.records.db.selectFrom('consumer_keys').selectAll().execute()).toEqual([]);
    await one.remove();
    await other.remove();
  });
});
