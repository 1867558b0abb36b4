import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { FLUSH_STEPS, type FlushStep } from '../../src/usage/flush-steps.ts';
import { startReplica } from './support/replica-process.ts';
import { usageOf } from './support/sample-usage.ts';
import { expireLeases } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

const ROUNDS = 2;

describe('a flusher that is killed', () => {
  let world: UsageWorld;
  let keyIds: readonly string[];
  let sequence = 0;
  beforeAll(async () => {
    world = await createUsageWorld();
    keyIds = await world.newKeys(20);
  });
  afterAll(() => world.close());

  async function dieAt(step: FlushStep): Promise<void> {
    sequence += 1;
    const sums = usageOf({ endpoint: `/${step}`, customer: `${sequence}`, times: 3 });
    await world.live.write(keyIds.map((keyId) => ({ keyId, writer: 'test', sequence, sums })));
    await expireLeases(world.redis.url);
    const { ended } = startReplica({
      redisUrl: world.redis.url,
      databaseUrl: world.databaseUrl,
      do: 'flush',
      keyIds,
      dieAt: step,
    });
    expect(await ended).toBe('SIGKILL');
    for (const keyId of keyIds) {
      const usage = await world.stored.read(keyId);
      expect(usage.requests).toBe(sequence * 3);
      expect(usage.endpoints.reduce((sum, { requests }) => sum + requests, 0)).toBe(sequence * 3);
    }
  }

  it.each(FLUSH_STEPS)(
    'after the step "%s" leaves sums that are exact at once and stay so when another goes on',
    async (step) => {
      for (let round = 1; round <= ROUNDS; round += 1) await dieAt(step);
      await world.flushAll();
      expect(await world.requestsInPostgres()).toBe(sequence * 3 * keyIds.length);
      for (const keyId of keyIds) {
        expect(await world.live.read(keyId)).toEqual([]);
        const { sums } = await world.history.read(keyId);
        expect(sums.endpoints.get(`/${step}`)?.requests).toBe(3 * ROUNDS);
        expect([...sums.customers.values()].reduce((sum, { requests }) => sum + requests, 0)).toBe(
          sequence * 3,
        );
      }
    },
  );
});
