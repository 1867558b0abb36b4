import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Usage } from '../../src/usage/create-usage.ts';
import type { LiveUsage } from '../../src/usage/live-usage.ts';
import { shardOf } from '../../src/usage/shards.ts';
import { StoredUsage } from '../../src/usage/stored-usage.ts';
import type { KeyUsage } from '../../src/usage/usage-counts.ts';
import { until } from '../support/until.ts';
import { requestOfMix } from './support/request-mix.ts';
import { manyNames, sliceOf } from './support/sample-usage.ts';
import { takeAll, usageOver, writeSlices } from './support/usage-stores.ts';
import { createUsageWorld, type UsageWorld } from './support/usage-world.ts';

/** Of one key, while replicas write and move its counts. */
const READINGS = 100;

function expectSumsAgree(usage: KeyUsage): void {
  for (const list of [usage.endpoints, usage.customers]) {
    expect(list.reduce((sum, { requests }) => sum + requests, 0)).toBe(usage.requests);
    expect(list.reduce((sum, { failed }) => sum + failed, 0)).toBe(usage.failed);
  }
  expect(usage.successful + usage.failed).toBe(usage.requests);
}

describe('the detail response', () => {
  let world: UsageWorld;
  beforeAll(async () => {
    world = await createUsageWorld();
  });
  afterAll(() => world.close());

  it('never falls and never exceeds the truth while counts are written and moved', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const { live, history } = world;
    const replicas = [1, 2].map(() => usageOver({ live, history, flushEveryMs: 2 }));
    const appliedBatches = () => replicas.reduce((sum, { stats }) => sum + stats.flusher.batchesApplied, 0);
    for (const replica of replicas) replica.start();
    let recorded = 0;
    let readings = 0;
    const isOver = () => readings >= READINGS;
    const record = async () => {
      while (!isOver()) {
        for (const replica of replicas) {
          replica.recorder.record(requestOfMix(recorded, [keyId]));
          recorded += 1;
        }
        await wait(1);
      }
    };
    const write = async (replica: Usage) => {
      while (!isOver()) {
        // Writes what was recorded first, and does so more often than the replica by itself.
        await replica.pending.read([]);
        await wait(2);
      }
    };
    const poll = async () => {
      let last = 0;
      while (!isOver()) {
        const usage = await world.stored.read(keyId);
        expect(usage.requests).toBeLessThanOrEqual(recorded);
        expect(usage.requests).toBeGreaterThanOrEqual(last);
        expectSumsAgree(usage);
        last = usage.requests;
        readings += 1;
      }
    };
    const disturb = async () => {
      while (!isOver()) {
        await world.flushAll();
        // The replicas are to find something as well.
        const applied = appliedBatches();
        await until(() => appliedBatches() > applied || isOver());
      }
    };
    await Promise.all([record(), ...replicas.map(write), poll(), poll(), disturb()]);
    for (const replica of replicas) expect(await replica.stop(5000)).toBe(true);
    expect((await world.stored.read(keyId)).requests).toBe(recorded);
    expect(appliedBatches()).toBeGreaterThan(0);
  });

  it('is the same whatever moves between its two readings', async () => {
    const [keyId = ''] = await world.newKeys(1);
    const write = (times: number) => writeSlices(world.live, sliceOf(keyId, { times }));
    const take = () => takeAll(world.live, keyId);
    const applyTaken = async () => {
      for (const batch of await take()) await world.history.apply(batch);
    };
    const moves: readonly (() => Promise<unknown>)[] = [
      async () => {},
      () => take(),
      applyTaken,
      () => world.flushAll(),
      async () => {
        await applyTaken();
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
            value: async (ids: readonly string[]) => {
              const live = await world.live.read(ids);
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

  it('has 500 endpoints and 1000 customers, most requests first', async () => {
    const [keyId = ''] = await world.newKeys(1);
    await writeSlices(world.live, manyNames(keyId, 1000));
    await world.flushAll();
    const request = { endpoint: '/7', customer: '9', times: 5, forwardedUs: 1_234_567 };
    await writeSlices(world.live, sliceOf(keyId, request));
    const usage = await world.stored.read(keyId);
    expect([usage.endpoints.length, usage.customers.length]).toEqual([501, 1000]);
    expect(usage.endpoints.slice(0, 2)).toEqual([
      { endpoint: '__other__', requests: 500, successful: 500, failed: 0, averageResponseTimeMs: 0 },
      { endpoint: '/7', requests: 6, successful: 6, failed: 0, averageResponseTimeMs: 1234.57 },
    ]);
    expect(usage.customers[0]).toEqual({ customerId: '9', requests: 6, successful: 6, failed: 0 });
    expectSumsAgree(usage);
  });

  it('gives places first come, first served, even if others have more requests later', async () => {
    const [keyId = ''] = await world.newKeys(1);
    await writeSlices(world.live, manyNames(keyId, 999));
    await world.flushAll();
    await writeSlices(world.live, sliceOf(keyId, { customer: 'the last place' }));
    const placeOf = async (customer: string) =>
      (await world.stored.read(keyId)).customers.find(({ customerId }) => customerId === customer)?.requests;
    expect(await placeOf('the last place')).toBe(1);
    await writeSlices(world.live, sliceOf(keyId, { customer: 'too late', times: 50 }));
    for (const moment of ['live', 'compacted', 'taken', 'moved']) {
      if (moment === 'compacted') await world.live.compact(shardOf(keyId));
      if (moment === 'taken') await takeAll(world.live, keyId);
      if (moment === 'moved') await world.flushAll();
      expect([moment, await placeOf('the last place')]).toEqual([moment, 1]);
      expect([moment, await placeOf('too late')]).toEqual([moment, undefined]);
      expect([moment, await placeOf('__other__')]).toEqual([moment, 50]);
    }
  });
});
