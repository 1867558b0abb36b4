import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { OTHER } from '../../src/usage/cap-names.ts';
import type { LiveUsage, UsageBatch } from '../../src/usage/live-usage.ts';
import { SHARDS, shardOf } from '../../src/usage/shards.ts';
import { HOURS_A_DAY, noCounts, type UniformUsage, type UsageSlice } from '../../src/usage/usage-slice.ts';
import { addedUp, HOUR, manyNames, requestsIn, requestsOf, sliceOf } from '../usage/support/sample-usage.ts';
import {
  LIVE_STORES,
  type LiveStore,
  newKeyId,
  takeAll,
  writeSlices,
} from '../usage/support/usage-stores.ts';

const HOSTILE = ['__proto__', 'constructor', 'toString', '-1 0', 'k', '#e', '', ' ', '*', '{}', '🚀', OTHER];

describe.each(Object.entries(LIVE_STORES))('live usage %s', (_name, open) => {
  let store: LiveStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  async function write(live: LiveUsage, sequence: number, slice: UsageSlice, previous = sequence - 1) {
    const shard = shardOf(slice.keyId);
    const [outcome] = await live.write([
      { shard, writer: `test-of-${slice.keyId}`, sequence, previous, recorded: [slice] },
    ]);
    return outcome;
  }

  /** The batch of a key's shard without what it has of other keys. Batches that keys of earlier tests left in the shard are dropped. */
  async function take(keyId: string): Promise<UsageBatch | undefined> {
    for (;;) {
      const batches = await takeAll(store.second, keyId);
      if (batches.length === 0) return undefined;
      for (const batch of batches) {
        const slices = batch.slices.filter((slice) => slice.keyId === keyId);
        if (slices.length > 0) return { ...batch, slices };
        await store.second.drop(batch);
      }
    }
  }

  it('adds up the writes to a key, by endpoint, customer and hour', async () => {
    const keyId = newKeyId();
    const writes = [
      sliceOf(keyId, { endpoint: '/a', customer: 'one', forwardedUs: 1234 }),
      sliceOf(
        keyId,
        { endpoint: '/a', customer: 'two', successful: false, times: 3 },
        { endpoint: '/b', hour: HOUR + 1, forwardedUs: 9_000_000_000, times: 1000 },
      ),
      sliceOf(keyId, { endpoint: '/b', customer: 'one' }),
    ];
    for (const [index, slice] of writes.entries()) {
      expect(await write(store.first, index + 1, slice)).toBe('written');
    }
    const [live, ...others] = await store.second.read([keyId]);
    expect(live?.slices).toEqual(addedUp(writes));
    expect(others).toEqual([]);
  });

  it('adds up what is all alike with what is not, of each key of a write', async () => {
    const keyIds = [newKeyId()];
    while (keyIds.length < 3) {
      const other = newKeyId();
      if (shardOf(other) === shardOf(keyIds[0] ?? '')) keyIds.push(other);
    }
    const uniform = keyIds.map((keyId, index): UniformUsage => {
      const counts = { ...noCounts(), requests: index + 1, successful: 1, bytesOut: 7 };
      const names = { hour: HOUR, planId: 'gold', endpoint: '/a', customerId: 'anonymous' };
      return { keyId, ...names, counts, lastUsedAtS: HOUR * 3600 };
    });
    const mixed = sliceOf(keyIds[1] ?? '', { endpoint: '/b' }, { customer: 'two' });
    const writes = [uniform, [mixed, ...uniform.slice(2)], uniform.slice(0, 1)];
    for (const [index, recorded] of writes.entries()) {
      const numbers = { writer: `test-of-all-${keyIds[0]}`, sequence: index + 1, previous: index };
      await store.first.write([{ shard: shardOf(keyIds[0] ?? ''), ...numbers, recorded }]);
    }
    for (const keyId of keyIds) {
      const expected = addedUp(writes.flat().filter((recorded) => recorded.keyId === keyId));
      const read = (await store.second.read([keyId])).flatMap(({ slices }) => slices);
      expect(read).toEqual(expected);
      await store.first.compact(shardOf(keyId));
      expect((await take(keyId))?.slices).toEqual(expected);
    }
  });

  it('reads several keys at once, and nothing of the others', async () => {
    const [one, two, other] = [newKeyId(), newKeyId(), newKeyId()];
    for (const keyId of [one, two, other]) await writeSlices(store.first, sliceOf(keyId, {}));
    const found = (await store.second.read([one, two])).flatMap(({ slices }) => slices);
    expect(found.map(({ keyId }) => keyId).toSorted()).toEqual([one, two].toSorted());
  });

  it('takes a write once, however often it is made, also after its counts moved', async () => {
    const keyId = newKeyId();
    const once = () => write(store.first, 7, sliceOf(keyId, { times: 2 }), 0);
    await once();
    expect(await once()).toBe('written');
    const batch = await take(keyId);
    expect(await once()).toBe('written');
    if (batch !== undefined) await store.first.drop(batch);
    expect(await once()).toBe('written');
    expect(requestsOf(batch?.slices ?? [])).toBe(2);
    expect(await store.first.read([keyId])).toEqual([]);
    await write(store.first, 8, sliceOf(keyId, { times: 5 }));
    expect(requestsOf(await store.first.read([keyId]))).toBe(5);
  });

  it('tells writers apart, whose numbers mean nothing to each other', async () => {
    const keyId = newKeyId();
    const shard = shardOf(keyId);
    const recorded = [sliceOf(keyId, {})];
    for (const writer of ['one', 'two'].map((name) => `${name}-${keyId}`)) {
      await store.first.write([{ shard, writer, sequence: 5, previous: 0, recorded }]);
      await store.second.write([{ shard, writer, sequence: 4, previous: 0, recorded }]);
    }
    expect(requestsOf(await store.first.read([keyId]))).toBe(2);
  });

  it('names in a batch the last write of each writer', async () => {
    const keyId = newKeyId();
    await write(store.first, 1, sliceOf(keyId, {}));
    await write(store.first, 2, sliceOf(keyId, {}));
    const batch = await take(keyId);
    await write(store.first, 3, sliceOf(keyId, {}));
    expect(batch?.writers.get(`test-of-${keyId}`)).toBe(2);
  });

  it('holds the first 500 endpoints and 1000 customers of a key, and sums the rest', async () => {
    const keyId = newKeyId();
    await write(store.first, 1, manyNames(keyId, 400, 'x'));
    await write(store.first, 2, manyNames(keyId, 700, 'y'));
    await write(store.first, 3, manyNames(keyId, 700, 'y'));
    await store.second.compact(shardOf(keyId));
    const slice = (await store.first.read([keyId]))[0]?.slices[0] ?? sliceOf(keyId);
    expect(requestsOf([slice])).toBe(1800);
    expect([slice.endpoints.size, slice.customers.size]).toEqual([501, 1001]);
    expect(requestsIn(slice.endpoints.values())).toBe(1800);
    expect(requestsIn(slice.customers.values())).toBe(1800);
    expect(slice.endpoints.get(OTHER)?.requests).toBe(1200);
    expect(slice.endpoints.get('/x0')?.requests).toBe(1);
    expect(slice.endpoints.get('/y99')?.requests).toBe(2);
    expect(slice.customers.get(OTHER)?.requests).toBe(200);
  });

  it('holds the first 500 endpoints and 1000 customers of a day, in however many hours they came', async () => {
    const keyId = newKeyId();
    const midnight = HOUR - (HOUR % HOURS_A_DAY);
    for (let of = 0; of < HOURS_A_DAY; of += 1) {
      const invented = Array.from({ length: 300 }, (_, index) => {
        const name = `${of}-${index}`;
        return { endpoint: name, customer: name, hour: midnight + of };
      });
      const known = { endpoint: '0-0', customer: '0-0', hour: midnight + of };
      await write(store.first, of + 1, sliceOf(keyId, ...invented, known));
      if (of % 6 === 5) await store.second.compact(shardOf(keyId));
    }
    const slices = (await store.first.read([keyId])).flatMap((batch) => batch.slices);
    const namesOf = (list: 'endpoints' | 'customers') =>
      new Set(slices.flatMap((slice) => [...slice[list].keys()]));
    expect([namesOf('endpoints').size, namesOf('customers').size]).toEqual([501, 1001]);
    expect(namesOf('endpoints')).toContain('1-199');
    expect(requestsOf(slices)).toBe(301 * HOURS_A_DAY);
    for (const list of ['endpoints', 'customers'] as const) {
      expect(requestsIn(slices.flatMap((slice) => [...slice[list].values()]))).toBe(301 * HOURS_A_DAY);
      expect(requestsIn(slices.flatMap((slice) => slice[list].get('0-0') ?? []))).toBe(HOURS_A_DAY + 1);
    }
  });

  it('loses nothing when it is compacted while others write', async () => {
    const keyId = newKeyId();
    const compacting = async () => {
      for (let time = 0; time < 20; time += 1) {
        await Promise.all([store.first, store.second].map((live) => live.compact(shardOf(keyId))));
      }
    };
    const writing = async (live: LiveUsage) => {
      for (let time = 0; time < 50; time += 1) await writeSlices(live, manyNames(keyId, 3, `${time % 7}`));
    };
    await Promise.all([compacting(), writing(store.first), writing(store.second)]);
    expect(requestsOf(await store.first.read([keyId]))).toBe(300);
    await store.first.compact(shardOf(keyId));
    expect(requestsOf(await store.first.read([keyId]))).toBe(300);
  });

  it('keeps names apart that mean something to a language or to itself', async () => {
    const keyId = newKeyId();
    const named = HOSTILE.map((name, index) => ({ endpoint: name, customer: name, times: index + 1 }));
    const slice = sliceOf(keyId, ...named);
    await write(store.first, 1, slice);
    await write(store.first, 2, slice);
    expect((await store.first.read([keyId]))[0]?.slices).toEqual(addedUp([slice, slice]));
  });

  it('has one batch at most, which never changes and comes before the live counts', async () => {
    const keyId = newKeyId();
    expect(await take(keyId)).toBeUndefined();
    await write(store.first, 1, sliceOf(keyId, { times: 2 }));
    const [live] = await store.first.read([keyId]);
    const batch = await take(keyId);
    expect([batch?.id, batch?.source, batch?.slices]).toEqual([live?.id, live?.source, live?.slices]);
    await write(store.first, 2, sliceOf(keyId, { times: 3 }));
    await store.first.compact(shardOf(keyId));
    expect(await take(keyId)).toEqual(batch);
    const [waiting, later] = await store.first.read([keyId]);
    expect(waiting?.slices).toEqual(batch?.slices);
    expect(requestsOf(later?.slices ?? [])).toBe(3);
    expect(later?.id).toBeGreaterThan(batch?.id ?? Number.NaN);
  });

  it('removes a batch only while it is the one that waits', async () => {
    const keyId = newKeyId();
    await write(store.first, 1, sliceOf(keyId, {}));
    const batch = await take(keyId);
    if (batch === undefined) throw new Error('no batch');
    await store.first.drop(batch);
    await write(store.first, 2, sliceOf(keyId, {}));
    const next = await take(keyId);
    await store.first.drop(batch);
    expect((await store.first.read([keyId]))[0]?.id).toBe(next?.id);
  });

  it('knows since when its oldest counts wait', async () => {
    for (let shard = 0; shard < SHARDS; shard += 1) {
      await store.first.release(shard, 0);
      for (const batch of (await store.first.take(shard)) ?? []) await store.first.drop(batch);
      await store.first.release(shard, 0);
      // What a batch of an earlier test kept from becoming one.
      for (const batch of (await store.first.take(shard)) ?? []) await store.first.drop(batch);
      await store.first.release(shard, 0);
    }
    expect(await store.first.oldestAtMs()).toBeUndefined();
    const beganAtMs = Date.now();
    await writeSlices(store.first, sliceOf(newKeyId(), {}));
    const oldestAtMs = (await store.second.oldestAtMs()) ?? 0;
    expect(oldestAtMs).toBeGreaterThanOrEqual(beganAtMs - 1);
    expect(oldestAtMs).toBeLessThanOrEqual(Date.now() + 1);
  });
});
