import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sql } from 'kysely';
import { until } from '../support/until.ts';
import { startReplica } from './support/replica-process.ts';
import { sliceOf } from './support/sample-usage.ts';
import { expireLeases, writeSlices } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

/** Crashes in a row, each with what the one before left. */
const ROUNDS = 2;
/** The first table that a move writes, and the last one. */
const FIRST_AND_LAST = ['usage_shards', 'usage_customer_days'];
/** Where the counts of a batch are. */
const TABLES = [
  'usage_by_endpoint',
  'usage_by_customer',
  'usage_hours',
  'usage_key_days',
  'usage_endpoint_days',
  'usage_customer_days',
];

describe('a flusher that is killed', () => {
  let world: UsageWorld;
  let keyIds: readonly string[];
  let written = 0;
  beforeAll(async () => {
    world = await createUsageWorld();
    keyIds = await world.newKeys(20);
  });
  afterAll(() => world.close());

  async function writeEach(endpoint: string): Promise<void> {
    written += 3;
    const request = { endpoint, customer: `${written}`, times: 3 };
    for (const keyId of keyIds) await writeSlices(world.live, sliceOf(keyId, request));
    await expireLeases(world.redis.url);
  }

  const startFlusher = (dieAfter?: 'take' | 'apply' | 'drop' | 'release') =>
    startReplica({
      redisUrl: world.redis.url,
      databaseUrl: world.databaseUrl,
      do: 'flush',
      keyIds,
      ...(dieAfter && { dieAfter }),
    });

  async function expectExact(): Promise<void> {
    for (const keyId of keyIds) {
      const usage = await world.stored.read(keyId);
      expect(usage.requests).toBe(written);
      expect(usage.endpoints.reduce((sum, { requests }) => sum + requests, 0)).toBe(written);
    }
  }

  async function expectAllMoved(): Promise<void> {
    await world.flushAll();
    expect(await world.requestsInPostgres()).toBe(written * keyIds.length);
    for (const table of TABLES) {
      const { rows } = await sql<{ requests: number }>`
        SELECT sum(requests)::bigint AS requests FROM ${sql.table(table)}`.execute(world.records.db);
      expect([table, rows[0]?.requests]).toEqual([table, written * keyIds.length]);
    }
    expect(await world.live.read(keyIds)).toEqual([]);
  }

  it.each(FIRST_AND_LAST)('before it writes "%s" leaves sums that are exact and stay so', async (table) => {
    await writeEach(`/${table}`);
    await world.records.db.transaction().execute(async (transaction) => {
      await sql`LOCK TABLE ${sql.table(table)} IN EXCLUSIVE MODE`.execute(transaction);
      const flusher = startFlusher();
      await until(async () => {
        const { rows } = await sql`SELECT FROM pg_locks
            WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`.execute(
          world.records.db,
        );
        return rows.length > 0;
      });
      flusher.kill('SIGKILL');
      expect(await flusher.ended).toBe('SIGKILL');
    });
    await expectExact();
    await expectAllMoved();
  });

  it.each(['take', 'apply', 'drop', 'release'] as const)(
    'after the step "%s" leaves sums that are exact and stay so',
    async (step) => {
      for (let round = 1; round <= ROUNDS; round += 1) {
        await writeEach(`/${step}`);
        expect(await startFlusher(step).ended).toBe('SIGKILL');
        await expectExact();
      }
      await expectAllMoved();
    },
  );
});
