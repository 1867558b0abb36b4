import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { shardOf } from '../../src/usage/live-usage.ts';
import { sliceOf } from './support/sample-usage.ts';
import { writeSlices } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

const HOUR = Math.floor(Date.now() / 3_600_000);
const MINUTE_MS = 60_000;

/** What version 0.1 did, as its scripts and statements did it. */
class OldReplica {
  readonly #redis: Redis;
  readonly #world: UsageWorld;
  #lastId = Date.now() * 1000;

  constructor(redis: Redis, world: UsageWorld) {
    this.#redis = redis;
    this.#world = world;
  }

  /** Marks the key and adds to its live hash. */
  async write(keyId: string, requests: number): Promise<void> {
    const live = `tg:{${keyId}}:usage:live`;
    await this.#redis.zadd(`tg:usage:marks:${shardOf(keyId) % 16}`, String(Date.now() + 2000), keyId);
    const known = Number((await this.#redis.hget(live, 't'))?.split(' ')[0] ?? 0);
    const sums = `${known + requests} ${known + requests} ${known + requests} ${(known + requests) * 1000}`;
    this.#lastId += 1;
    await this.#redis.hsetnx(live, 'id', String(this.#lastId));
    const fields = ['t', `h${HOUR}`, 'e/old', 'canonymous'].flatMap((field) => [field, sums]);
    await this.#redis.hset(live, '#e', '1', '#c', '1', ...fields);
    await this.#redis.hset(`tg:{${keyId}}:usage:writes`, '#id', String(this.#lastId));
  }

  /** Turns the live hash into the batch, as far as it came before it died. */
  async take(keyId: string): Promise<void> {
    await this.#redis.rename(`tg:{${keyId}}:usage:live`, `tg:{${keyId}}:usage:batch`);
  }

  /** Adds the batch to Postgres, without removing it from Redis. */
  async apply(keyId: string): Promise<void> {
    const fields = await this.#redis.hgetall(`tg:{${keyId}}:usage:batch`);
    const [requests = '0'] = (fields.t ?? '0').split(' ');
    const { db } = this.#world.records;
    const counts = sql`${requests}::bigint, ${requests}::bigint, ${requests}::bigint, ${requests}::bigint * 1000`;
    const add = sql`requests = stored.requests + excluded.requests, successful = stored.successful + excluded.successful,
      forwarded = stored.forwarded + excluded.forwarded, forwarded_us = stored.forwarded_us + excluded.forwarded_us`;
    await db.transaction().execute(async (transaction) => {
      const { rows } = await sql`
        INSERT INTO usage_totals AS stored (key_id, last_batch, requests, successful, forwarded, forwarded_us)
        SELECT ${keyId}, ${fields.id}::bigint, ${counts}
        ON CONFLICT (key_id) DO UPDATE SET last_batch = excluded.last_batch, ${add}
        WHERE stored.last_batch < excluded.last_batch RETURNING key_id`.execute(transaction);
      if (rows.length === 0) return;
      for (const [table, name] of [
        ['usage_by_endpoint', '/old'] as const,
        ['usage_by_customer', 'anonymous'] as const,
      ]) {
        await sql`INSERT INTO ${sql.table(table)} AS stored (key_id, name, requests, successful, forwarded, forwarded_us)
          SELECT ${keyId}, ${name}, ${counts} ON CONFLICT (key_id, name) DO UPDATE SET ${add}`.execute(
          transaction,
        );
      }
      await sql`INSERT INTO usage_by_hour AS stored (key_id, hour, requests, successful, forwarded, forwarded_us)
        SELECT ${keyId}, to_timestamp(${HOUR}::double precision * 3600), ${counts}
        ON CONFLICT (key_id, hour) DO UPDATE SET ${add}`.execute(transaction);
    });
  }
}

describe('an upgrade from version 0.1', () => {
  let world: UsageWorld;
  let direct: Redis;
  let old: OldReplica;
  beforeAll(async () => {
    world = await createUsageWorld();
    direct = new Redis(world.redis.url);
    old = new OldReplica(direct, world);
  });
  afterAll(async () => {
    direct.disconnect();
    await world.close();
  });

  async function expectEverywhere(keyId: string, requests: number): Promise<void> {
    const usage = await world.stored.read(keyId);
    const { endpoints, customers } = usage;
    expect(usage.requests).toBe(requests);
    for (const list of [endpoints, customers]) {
      expect(list.reduce((sum, each) => sum + each.requests, 0)).toBe(requests);
    }
  }

  async function hoursOf(keyId: string): Promise<number> {
    const hours = world.records.db.selectFrom('usage_hours').select('requests').where('key_id', '=', keyId);
    return (await hours.execute()).reduce((sum, row) => sum + row.requests, 0);
  }

  it('counts once what waits, at whichever step an old replica left it', async () => {
    const keyIds = await world.newKeys(4);
    const [live = '', taken = '', applied = '', both = ''] = keyIds;
    for (const keyId of keyIds) await old.write(keyId, 5);
    for (const keyId of [taken, applied, both]) await old.take(keyId);
    for (const keyId of [applied, both]) await old.apply(keyId);
    await old.write(both, 3);
    const expected = [5, 5, 5, 8];
    for (const moment of ['before', 'after', 'after another']) {
      for (const [index, keyId] of keyIds.entries()) await expectEverywhere(keyId, expected[index] ?? 0);
      if (moment === 'before') expect(await direct.exists(`tg:{${live}}:usage:live`)).toBe(1);
      await world.flushAll();
    }
    for (const [index, keyId] of keyIds.entries()) expect(await hoursOf(keyId)).toBe(expected[index]);
    for (const keyId of keyIds) expect(await direct.keys(`tg:{${keyId}}:usage:[lb]*`)).toEqual([]);
  });

  it('loses nothing while replicas of both versions write and move the same key', async () => {
    const [keyId = ''] = await world.newKeys(1);
    let written = 0;
    let seen = 0;
    for (let round = 0; round < 12; round += 1) {
      await old.write(keyId, 2);
      await writeSlices(world.live, sliceOf(keyId, { hour: HOUR }));
      written += 3;
      if (round % 3 === 0) {
        await old.take(keyId).catch(() => {});
        await old.apply(keyId);
      }
      if (round % 2 === 0) await world.flushAll();
      const { requests } = await world.stored.read(keyId);
      expect(requests).toBe(written);
      expect(requests).toBeGreaterThanOrEqual(seen);
      seen = requests;
    }
    await world.flushAll();
    await expectEverywhere(keyId, written);
    expect(await hoursOf(keyId)).toBe(written);
  });

  it('removes a mark once it is old and its key has no counts, and not before', async () => {
    const [early = '', late = ''] = await world.newKeys(2);
    const marksOf = (keyId: string) => `tg:usage:marks:${shardOf(keyId) % 16}`;
    await direct.zadd(marksOf(early), String(Date.now() - 2 * MINUTE_MS), early);
    await direct.zadd(marksOf(late), String(Date.now()), late);
    await world.flushAll();
    expect(await direct.zscore(marksOf(early), early)).toBeNull();
    expect(await direct.zscore(marksOf(late), late)).not.toBeNull();
  });
});
