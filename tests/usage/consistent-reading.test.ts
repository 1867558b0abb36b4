import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/platform/clock.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createUsage } from '../../src/usage/create-usage.ts';
import type { LiveUsage } from '../../src/usage/live-usage.ts';
import { StoredUsage } from '../../src/usage/stored-usage.ts';
import type { KeyUsage } from '../../src/usage/usage.ts';
import { requestOfMix } from './support/request-mix.ts';
import { manyNames, usageOf } from './support/sample-usage.ts';
import { silent } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

function expectSumsAgree(usage: KeyUsage): void {
  for (const list of [usage.endpoints, usage.customers]) {
    expect(list.reduce((sum, { requests }) => sum + requests, 0)).toBe(usage.requests);
    expect(list.reduce((sum, { failed }) => sum + failed, 0)).toBe(usage.failed);
  }
  expect(usage.successful + usage.failed).toBe(usage.requests);
}

describe('the detail answer', () => {
  let world: UsageWorld;
  beforeAll(async () => {
    world = await createUsageWorld();
  });
  afterAll(() => world.close());

  it('never falls and never exceeds the truth, in totals and lists, while counts are written and moved', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const replicas = [1, 2].map(() =>
      createUsage({
        mask: (name) => name,
        live: world.live,
        history: world.history,
        clock: systemClock,
        random: systemRandom,
        log: silent,
        retentionDays: 90,
        writeEveryMs: 3,
        flushEveryMs: 2,
      }),
    );
    for (const replica of replicas) replica.start();
    let recorded = 0;
    let readings = 0;
    const endsAtMs = performance.now() + 4000;
    const record = async () => {
      while (performance.now() < endsAtMs) {
        for (const replica of replicas) {
          replica.recorder.record(requestOfMix(recorded, [keyId]));
          recorded += 1;
        }
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    };
    const poll = async () => {
      let last = 0;
      while (performance.now() < endsAtMs) {
        const usage = await world.stored.read(keyId);
        expect(usage.requests).toBeLessThanOrEqual(recorded);
        expect(usage.requests).toBeGreaterThanOrEqual(last);
        expectSumsAgree(usage);
        last = usage.requests;
        readings += 1;
      }
    };
    const disturb = async () => {
      while (performance.now() < endsAtMs) {
        await world.flushAll();
        // The replicas are to find something as well.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    await Promise.all([record(), poll(), poll(), disturb()]);
    for (const replica of replicas) expect(await replica.stop(5000)).toBe(true);
    expect((await world.stored.read(keyId)).requests).toBe(recorded);
    expect(readings).toBeGreaterThan(50);
    const applied = replicas.reduce((sum, { stats }) => sum + stats.flusher.batchesApplied, 0);
    expect(applied).toBeGreaterThan(0);
  });

  it('is the same whatever moves between its two readings', async () => {
    const [keyId = ''] = await world.newKeys(1);
    let sequence = 1000;
    const write = async (times: number) => {
      sequence += 1;
      await world.live.write([{ keyId, writer: 'test', sequence, sums: usageOf({ times }) }]);
    };
    const take = async () => (await world.live.takeBatches([keyId])).filter((batch) => batch !== undefined);
    const moves: readonly (() => Promise<unknown>)[] = [
      async () => {},
      () => take(),
      async () => world.history.apply(await take()),
      () => world.flushAll(),
      async () => {
        await world.history.apply(await take());
        await world.flushAll();
      },
    ];
    let truth = 0;
    for (const before of moves) {
      for (const between of moves) {
        await write(3);
        await before();
        await write(4);
        truth += 7;
        let isBetween = true;
        const paused: LiveUsage = Object.create(world.live, {
          read: {
            value: async (id: string) => {
              const live = await world.live.read(id);
              if (isBetween) await between();
              return live;
            },
          },
        });
        expect((await new StoredUsage(paused, world.history).read(keyId)).requests).toBe(truth);
        isBetween = false;
        expect((await world.stored.read(keyId)).requests).toBe(truth);
      }
    }
  });

  it('has 500 endpoints and 1000 customers, most requests first, within milliseconds', async () => {
    const [keyId = ''] = await world.newKeys(1);
    await world.live.write([{ keyId, writer: 'test', sequence: 9001, sums: manyNames(1000) }]);
    await world.flushAll();
    await world.live.write([
      {
        keyId,
        writer: 'test',
        sequence: 9002,
        sums: usageOf({ endpoint: '/7', customer: '9', times: 5, forwardedUs: 1_234_567 }),
      },
      { keyId: 'another', writer: 'test', sequence: 9002, sums: usageOf({}) },
    ]);
    const usage = await world.stored.read(keyId);
    expect([usage.endpoints.length, usage.customers.length]).toEqual([501, 1000]);
    expect(usage.endpoints.slice(0, 2)).toEqual([
      { endpoint: '__other__', requests: 500, successful: 500, failed: 0, averageResponseTimeMs: 0 },
      { endpoint: '/7', requests: 6, successful: 6, failed: 0, averageResponseTimeMs: 1234.57 },
    ]);
    expect(usage.customers[0]).toEqual({ customerId: '9', requests: 6, successful: 6, failed: 0 });
    expectSumsAgree(usage);
    const times: number[] = [];
    for (let time = 0; time < 20; time += 1) {
      const startedAtMs = performance.now();
      await world.stored.read(keyId);
      times.push(performance.now() - startedAtMs);
    }
    // The machine may be busy with other tests: the best of many says what it takes.
    expect(Math.min(...times)).toBeLessThan(50);
  });

  it('recovers when the clock that ids are made from went back', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const future = (Date.now() + 86_400_000) * 1000;
    await world.history.apply([{ keyId, id: future, sums: usageOf({ times: 2 }) }]);
    await world.live.write([{ keyId, writer: 'test', sequence: 9003, sums: usageOf({ times: 3 }) }]);
    await world.flushAll();
    expect((await world.stored.read(keyId)).requests).toBe(5);
    await world.live.write([{ keyId, writer: 'test', sequence: 9004, sums: usageOf({ times: 4 }) }]);
    expect((await world.stored.read(keyId)).requests).toBe(9);
    await world.flushAll();
    await world.flushAll();
    expect((await world.history.read(keyId)).sums.totals.requests).toBe(9);
  });
});
