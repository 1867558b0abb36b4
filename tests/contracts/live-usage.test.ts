import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { LiveUsage, UsageBatch } from '../../src/usage/live-usage.ts';
import { OTHER } from '../../src/usage/usage-names.ts';
import type { UsageSums } from '../../src/usage/usage-sums.ts';
import { addedUp, HOUR, manyNames, requestsIn, usageOf } from '../usage/support/sample-usage.ts';
import { LIVE_STORES, type LiveStore, newKeyId } from '../usage/support/usage-stores.ts';

const HOSTILE = ['__proto__', 'constructor', 'toString', 'id', 't', '#e', '', ' ', '*', '{}', '🚀', OTHER];

describe.each(Object.entries(LIVE_STORES))('live usage %s', (_name, open) => {
  let store: LiveStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  const write = (live: LiveUsage, keyId: string, sequence: number, sums: UsageSums) =>
    live.write([{ keyId, writer: 'test', sequence, sums }]);

  async function take(keyId: string): Promise<UsageBatch> {
    const [batch] = await store.second.takeBatches([keyId]);
    if (batch === undefined) throw new Error('no batch');
    return batch;
  }

  it('adds up the writes to a key, by endpoint, customer and hour', async () => {
    const keyId = newKeyId();
    const writes = [
      usageOf({ endpoint: '/a', customer: 'one', forwardedUs: 1234 }),
      usageOf(
        { endpoint: '/a', customer: 'two', successful: false, times: 3 },
        { endpoint: '/b', hour: HOUR + 1, forwardedUs: 9_000_000_000, times: 1000 },
      ),
      usageOf({ endpoint: '/b', customer: 'one' }),
    ];
    for (const [index, sums] of writes.entries()) {
      expect(await write(store.first, keyId, index + 1, sums)).toEqual(['written']);
    }
    expect(await store.second.read(keyId)).toEqual([
      { keyId, id: expect.any(Number), sums: addedUp(writes) },
    ]);
  });

  it('takes a write once, however often it is made, also when its counts have moved on since', async () => {
    const keyId = newKeyId();
    await write(store.first, keyId, 7, usageOf({ times: 2 }));
    expect(await write(store.first, keyId, 7, usageOf({ times: 2 }))).toEqual(['written']);
    const batch = await take(keyId);
    expect(await write(store.first, keyId, 7, usageOf({ times: 2 }))).toEqual(['written']);
    await store.first.dropBatches([batch]);
    expect(await write(store.first, keyId, 7, usageOf({ times: 2 }))).toEqual(['written']);
    expect(batch.sums.totals.requests).toBe(2);
    expect(await store.first.read(keyId)).toEqual([]);
    await write(store.first, keyId, 8, usageOf({ times: 5 }));
    expect((await store.first.read(keyId))[0]?.sums.totals.requests).toBe(5);
  });

  it('tells writers apart, whose numbers mean nothing to each other', async () => {
    const keyId = newKeyId();
    for (const writer of ['one', 'two']) {
      await store.first.write([{ keyId, writer, sequence: 5, sums: usageOf({}) }]);
      await store.second.write([{ keyId, writer, sequence: 4, sums: usageOf({}) }]);
    }
    expect((await store.first.read(keyId))[0]?.sums.totals.requests).toBe(2);
  });

  it('holds 500 endpoints and 1000 customers of a key and sums the rest, so that lists and totals agree', async () => {
    const keyId = newKeyId();
    await write(store.first, keyId, 1, manyNames(400, 'x'));
    await write(store.first, keyId, 2, manyNames(700, 'y'));
    await write(store.first, keyId, 3, manyNames(700, 'y'));
    const [{ sums } = { sums: usageOf() }] = await store.first.read(keyId);
    expect(sums.totals.requests).toBe(1800);
    expect(sums.endpoints.size).toBe(501);
    expect(sums.customers.size).toBe(1001);
    expect(requestsIn(sums.endpoints.values())).toBe(1800);
    expect(requestsIn(sums.customers.values())).toBe(1800);
    expect(sums.endpoints.get(OTHER)?.requests).toBe(1200);
    expect(sums.endpoints.get('/x0')?.requests).toBe(1);
    expect(sums.customers.get(OTHER)?.requests).toBe(200);
  });

  it('keeps names apart that mean something to a language or to itself', async () => {
    const keyId = newKeyId();
    const sums = usageOf(
      ...HOSTILE.map((name, index) => ({ endpoint: name, customer: name, times: index + 1 })),
    );
    await write(store.first, keyId, 1, sums);
    await write(store.first, keyId, 2, sums);
    expect((await store.first.read(keyId))[0]?.sums).toEqual(addedUp([sums, sums]));
  });

  it('has one batch at most, which never changes and comes before the live counts', async () => {
    const keyId = newKeyId();
    expect(await store.first.takeBatches([keyId])).toEqual([undefined]);
    await write(store.first, keyId, 1, usageOf({ times: 2 }));
    const [live] = await store.first.read(keyId);
    const batch = await take(keyId);
    expect(batch).toEqual(live);
    await write(store.first, keyId, 2, usageOf({ times: 3 }));
    expect(await take(keyId)).toEqual(batch);
    const [waiting, later] = await store.first.read(keyId);
    expect(waiting).toEqual(batch);
    expect(later?.sums.totals.requests).toBe(3);
    expect(later?.id).toBeGreaterThan(batch.id);
  });

  it('removes a batch only while it is the one that waits', async () => {
    const keyId = newKeyId();
    await write(store.first, keyId, 1, usageOf({}));
    const batch = await take(keyId);
    await store.first.dropBatches([batch]);
    await write(store.first, keyId, 2, usageOf({}));
    const next = await take(keyId);
    await store.first.dropBatches([batch]);
    expect(await store.first.read(keyId)).toEqual([next]);
  });

  it('gives a waiting batch and what follows it ids above any that is asked for', async () => {
    const keyId = newKeyId();
    await write(store.first, keyId, 1, usageOf({ times: 2 }));
    const batch = await take(keyId);
    await write(store.first, keyId, 2, usageOf({ times: 3 }));
    const above = batch.id + 1_000_000_000_000;
    await store.first.renumber(batch, above);
    const [renumbered, live] = await store.first.read(keyId);
    expect(renumbered?.id).toBeGreaterThan(above);
    expect(renumbered?.sums).toEqual(batch.sums);
    expect(live?.id).toBeGreaterThan(renumbered?.id ?? Number.NaN);
    await store.first.renumber(batch, above + 1_000_000);
    expect((await store.first.read(keyId))[0]).toEqual(renumbered);
  });

  it('lends a key that was written to, to one flusher only', async () => {
    const keyIds = Array.from({ length: 40 }, newKeyId);
    await store.first.write(
      keyIds.map((keyId) => ({ keyId, writer: 'test', sequence: 1, sums: usageOf({}) })),
    );
    const lent: string[] = [];
    const borrow = async (live: LiveUsage): Promise<void> => {
      const claims = await live.claim(10);
      lent.push(...claims.map(({ keyId }) => keyId));
      if (claims.length > 0) await borrow(live);
    };
    await Promise.all([borrow(store.first), borrow(store.second)]);
    const ours = lent.filter((keyId) => keyIds.includes(keyId));
    expect(ours.toSorted()).toEqual(keyIds.toSorted());
  });

  it('lends a key again when it is written to while it is lent', async () => {
    const keyId = newKeyId();
    const claimed = async () => (await store.first.claim(1000)).find((claim) => claim.keyId === keyId);
    await write(store.first, keyId, 1, usageOf({}));
    const claim = await claimed();
    if (claim === undefined) throw new Error('not lent');
    await store.first.dropBatches([await take(keyId)]);
    await store.second.write([{ keyId, writer: 'another', sequence: 1, sums: usageOf({}) }]);
    await store.first.settle([[claim, 'moved']]);
    expect(await claimed()).toBeDefined();
  });

  it('forgets an erased key and drops what is written late', async () => {
    const keyId = newKeyId();
    await write(store.first, keyId, 1, usageOf({}));
    await take(keyId);
    await write(store.first, keyId, 2, usageOf({}));
    await store.first.erase(keyId);
    expect(await store.first.read(keyId)).toEqual([]);
    expect(await write(store.first, keyId, 3, usageOf({}))).toEqual(['dropped']);
    expect(await store.first.read(keyId)).toEqual([]);
    expect(await store.first.takeBatches([keyId])).toEqual([undefined]);
  });
});
