import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { shardOf } from '../../src/usage/shards.ts';
import { completed } from './support/sample-usage.ts';
import { expireLeases, recordingOver, takeAll } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

/** Each invents a name: at least twelve times as many as a key may have. */
const REQUESTS = 12_000;
const EMOJI = '👩‍🚀🚀';

/** What somebody sends who wants the gateway to fall over: every path is new, and long. */
function hostilePath(number: number): string {
  return `/${number}/${'p'.repeat(8000)}/${number}`;
}

function hostileCustomer(number: number): string {
  const kinds = [
    '__proto__',
    `${number}${EMOJI.repeat(50)}`,
    `\u0001${number}\u0000${EMOJI.repeat(50)}`,
    `${number}${'é'.repeat(4096)}`,
  ];
  return kinds[number % kinds.length] ?? '';
}

describe('a key whose clients invent names', () => {
  let world: UsageWorld;
  let direct: Redis;
  beforeAll(async () => {
    world = await createUsageWorld();
    direct = new Redis(world.redis.url);
  });
  afterAll(async () => {
    direct.disconnect();
    await world.close();
  });

  async function bytesInRedis(keyId: string): Promise<number> {
    let bytes = 0;
    for (const key of await direct.keys(`tg:{usage-${shardOf(keyId)}}:*`)) {
      bytes += Number(await direct.memory('USAGE', key, 'SAMPLES', 0));
    }
    return bytes;
  }

  it('takes a few megabytes of Redis, with exact totals, also while a batch waits', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const { buffer, writer } = recordingOver(world);
    let most = 0;
    for (let number = 0; number < REQUESTS; number += 1) {
      buffer.record(
        completed({
          keyId,
          endpoint: hostilePath(number),
          customerId: hostileCustomer(number),
          successful: number % 3 !== 0,
        }),
      );
      if (number % 1200 !== 1199) continue;
      expect(await writer.write()).toBe(true);
      // From half of the way on Postgres is down: a batch waits, and the live counts fill up behind it.
      if (number < REQUESTS / 2) await world.flushAll();
      else await takeAll(world.live, keyId);
      most = Math.max(most, await bytesInRedis(keyId));
    }
    expect(most).toBeGreaterThan(100_000);
    expect(most).toBeLessThan(4_000_000);
    for (const moment of ['before the flush', 'after it']) {
      const usage = await world.stored.read(keyId);
      expect([moment, usage.requests, usage.failed]).toEqual([moment, REQUESTS, Math.ceil(REQUESTS / 3)]);
      for (const list of [usage.endpoints, usage.customers]) {
        expect(list.reduce((sum, { requests }) => sum + requests, 0)).toBe(REQUESTS);
      }
      expect([usage.endpoints.length, usage.customers.length]).toEqual([501, 1001]);
      expect(usage.customers.find(({ customerId }) => customerId === '__proto__')?.requests).toBe(
        REQUESTS / 4,
      );
      await world.flushAll();
    }
  });

  it('leaves nothing in Redis but the numbers of writers when all is moved', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const { buffer, writer } = recordingOver(world);
    buffer.record(completed({ keyId }));
    await writer.write();
    await world.flushAll();
    await expireLeases(world.redis.url);
    const tag = `tg:{usage-${shardOf(keyId)}}`;
    expect(await direct.keys(`${tag}:*`)).toEqual([`${tag}:writers`]);
  });
});
