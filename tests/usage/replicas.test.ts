import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { expectedUsage, mix } from './support/expected-usage.ts';
import type { ReplicaTask } from './support/replica.ts';
import { startReplica } from './support/replica-process.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

/** Between two looks, so that the replicas have the machine to themselves for the most part. */
const PAUSE_MS = 10;

describe('replicas in processes of their own', () => {
  let world: UsageWorld;
  beforeAll(async () => {
    world = await createUsageWorld();
  });
  afterAll(() => world.close());

  function start(keyIds: readonly string[], task: Partial<ReplicaTask> = {}) {
    const { databaseUrl, redis } = world;
    return startReplica({ redisUrl: redis.url, databaseUrl, do: 'record-until-sigterm', keyIds, ...task });
  }

  async function requestsOf(keyIds: readonly string[]): Promise<number> {
    const usages = await Promise.all(keyIds.map((keyId) => world.stored.read(keyId)));
    return usages.reduce((sum, { requests }) => sum + requests, 0);
  }

  it('show exactly the 20 000 requests they recorded, before and after the move', async () => {
    const keyIds = await world.newKeys(3);
    const shares = [0, 6667, 13_334, 20_000];
    const replicas = [0, 1, 2].map((index) =>
      start(keyIds, { do: 'record', from: shares[index] ?? 0, to: shares[index + 1] ?? 0 }),
    );
    let seen = 0;
    let isRunning = true;
    const ended = Promise.all(replicas.map((replica) => replica.ended)).finally(() => {
      isRunning = false;
    });
    while (isRunning) {
      const now = await requestsOf(keyIds);
      expect(now).toBeGreaterThanOrEqual(seen);
      expect(now).toBeLessThanOrEqual(20_000);
      seen = now;
      await wait(PAUSE_MS);
    }
    expect(await ended).toEqual([0, 0, 0]);
    const truth = mix(0, 20_000, keyIds);
    const expected = keyIds.map((keyId) => expectedUsage(keyId, truth));
    expect(await Promise.all(keyIds.map((keyId) => world.stored.read(keyId)))).toEqual(expected);
    await world.flushAll();
    expect(await Promise.all(keyIds.map((keyId) => world.stored.read(keyId)))).toEqual(expected);
    for (const [index, keyId] of keyIds.entries()) {
      for (const table of ['usage_hours', 'usage_endpoint_days', 'usage_customer_days'] as const) {
        const rows = await world.records.db
          .selectFrom(table)
          .select('requests')
          .where('key_id', '=', keyId)
          .execute();
        const requests = rows.reduce((sum, row) => sum + row.requests, 0);
        expect([table, requests]).toEqual([table, expected[index]?.requests]);
      }
    }
  });

  it('lose nothing at SIGTERM under load', async () => {
    const keyIds = await world.newKeys(10);
    const replicas = [start(keyIds), start(keyIds)];
    await until(() => replicas.every(({ reports }) => reports.length > 100));
    for (const replica of replicas) replica.kill('SIGTERM');
    expect(await Promise.all(replicas.map(({ ended }) => ended))).toEqual([0, 0]);
    const recorded = replicas.reduce((sum, { reports }) => sum + (reports.at(-1)?.[0] ?? 0), 0);
    expect(await requestsOf(keyIds)).toBe(recorded);
  });

  it('lose at SIGKILL at most what Redis has not confirmed', async () => {
    for (let round = 0; round < 3; round += 1) {
      const keyIds = await world.newKeys(10);
      const replica = start(keyIds);
      await until(() => (replica.reports.at(-1)?.[1] ?? 0) > 0);
      const first = replica.reports.length;
      await until(() => replica.reports.length > first + 20 * round);
      replica.kill('SIGKILL');
      expect(await replica.ended).toBe('SIGKILL');
      const [recorded, confirmed] = replica.reports.at(-1) ?? [0, 0];
      const kept = await requestsOf(keyIds);
      expect(kept).toBeGreaterThanOrEqual(confirmed);
      expect(kept).toBeLessThanOrEqual(recorded + 40);
      await world.flushAll();
      expect(await requestsOf(keyIds)).toBe(kept);
    }
  });
});
